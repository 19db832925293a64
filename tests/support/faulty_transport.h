#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace tutti::test {

// A `TransportFault` is a fault that happens once, to a message that one rank sends.
struct TransportFault {
  enum class Kind : std::uint8_t {
    none,
    drop,      // message `at` counts as sent, but never leaves
    delay,     // message `at`, and what follows it on its channel, leaves later
    truncate,  // message `at` is announced and sent with half of its bytes
    close,     // the channel of message `at` breaks before it is sent
    cut,       // a channel breaks once it has sent `at` frames: within a message
    refuse,    // the channel to the receiver of message `at` cannot be made
  };
  Kind kind = Kind::none;
  std::uint64_t at = 0;  // messages are counted over all peers
  std::chrono::milliseconds pause{20};
};

class FaultyChannel;

// A `FaultyTransport` wraps one rank's end of another transport and causes the given fault. It has the name
// and addresses of the other transport, so the other ranks do not notice it.
class FaultyTransport final : public Transport, private TransportOwner, private Pollable {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, const TransportFault& fault);
  ~FaultyTransport() override;

  std::string_view name() const override { return inner_->name(); }
  std::string address() const override { return inner_->address(); }
  Status can_reach(const PeerInfo& peer) const override { return inner_->can_reach(peer); }
  Status start(Driver& driver, TransportOwner& owner) override;
  std::unique_ptr<Channel> open(int peer, std::chrono::nanoseconds connect_timeout) override;
  bool can_share() const override { return inner_->can_share(); }
  void share(ShareRequest& request) override { inner_->share(request); }
  void cancel_share(ShareRequest& request, const Status& why) override { inner_->cancel_share(request, why); }
  void stop() override;

  const TransportFault& fault() const { return fault_; }
  TransportOwner& owner() { return *owner_; }
  // Counts one more message; returns true if this is the one that gets the fault.
  bool is_it() { return count_++ == fault_.at; }
  void forget(FaultyChannel& channel) { std::erase(channels_, &channel); }

 private:
  // These functions of TransportOwner pass on what the inner transport says, in this transport's name.
  const PeerInfo& peer(int rank) const override { return owner_->peer(rank); }
  int size() const override { return owner_->size(); }
  int rank() const override { return owner_->rank(); }
  Channel* on_incoming(int rank, Transport& transport) override;
  void on_unusable(int rank, Transport& transport, const Status& why) override;
  RecvOp* on_arrival(Arrival& arrival) override { return owner_->on_arrival(arrival); }
  void on_withdrawn(Arrival& arrival) override { owner_->on_withdrawn(arrival); }
  void on_abort(int peer, std::uint32_t context, const Status& why) override {
    owner_->on_abort(peer, context, why);
  }
  void on_channel_down(int peer, const Status& why) override { owner_->on_channel_down(peer, why); }

  bool poll() override;
  Deadline next_deadline() const override;

  std::unique_ptr<Transport> inner_;
  const TransportFault fault_;
  std::uint64_t count_ = 0;
  Driver* driver_ = nullptr;
  TransportOwner* owner_ = nullptr;
  std::vector<FaultyChannel*> channels_;
};

}  // namespace tutti::test
