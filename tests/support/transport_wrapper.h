#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace tutti::test {

// A `ChannelWrapper` passes every call on to the channel that it wraps.
class ChannelWrapper : public Channel {
 public:
  ChannelWrapper(int peer, std::unique_ptr<Channel> inner) : peer_(peer), inner_(std::move(inner)) {}

  int peer() const { return peer_; }
  Channel& inner() { return *inner_; }

  void connect() override { inner_->connect(); }
  void send(SendOp& op) override { inner_->send(op); }
  void cancel_send(SendOp& op, const Status& why) override { inner_->cancel_send(op, why); }
  void claim(Arrival& arrival, RecvOp& op) override { inner_->claim(arrival, op); }
  void discard(Arrival& arrival) override { inner_->discard(arrival); }
  void cancel_recv(RecvOp& op, const Status& why) override { inner_->cancel_recv(op, why); }
  void send_abort(std::uint32_t context, const Status& why) override { inner_->send_abort(context, why); }
  void close(const Status& why, bool clean) override { inner_->close(why, clean); }
  bool drained() const override { return inner_->drained(); }
  bool has_begun() const override { return inner_->has_begun(); }
  void hand_over(Channel& to) override { inner_->hand_over(to); }
  const Status& status() const override { return inner_->status(); }
  const ChannelCounters& counters() const override { return inner_->counters(); }

 private:
  const int peer_;
  const std::unique_ptr<Channel> inner_;
};

// A `TransportWrapper` wraps one rank's end of another transport. It has the name and addresses of
// the wrapped transport, so the other ranks do not notice the wrapper.
class TransportWrapper : public Transport, protected TransportOwner, protected Pollable {
 public:
  explicit TransportWrapper(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  std::string address() const override { return inner_->address(); }
  Status can_reach(const PeerInfo& peer) const override { return inner_->can_reach(peer); }
  Status start(Driver& driver, TransportOwner& owner) override;
  std::unique_ptr<Channel> open(int peer, std::chrono::nanoseconds connect_timeout) override;
  bool can_share() const override { return inner_->can_share(); }
  void share(ShareRequest& request) override { inner_->share(request); }
  void cancel_share(ShareRequest& request, const Status& why) override { inner_->cancel_share(request, why); }
  Result<std::unique_ptr<RegisteredMemory>> add_memory(std::span<std::byte> region) override {
    return inner_->add_memory(region);
  }
  void stop() override;

  TransportOwner& owner() { return *owner_; }
  void forget(ChannelWrapper& channel) { std::erase(channels_, &channel); }

 protected:
  virtual std::unique_ptr<ChannelWrapper> wrap(int peer, std::unique_ptr<Channel> inner) = 0;
  // Returns the existing channels, in the order in which they were opened.
  const std::vector<ChannelWrapper*>& channels() const { return channels_; }
  // Returns null unless the transport has been started.
  Driver* driver() const { return driver_; }

  // The inner transport calls these functions of TransportOwner. Each of them passes the call on to this
  // transport's owner.
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

 private:
  const std::unique_ptr<Transport> inner_;
  Driver* driver_ = nullptr;
  TransportOwner* owner_ = nullptr;
  std::vector<ChannelWrapper*> channels_;
};

}  // namespace tutti::test
