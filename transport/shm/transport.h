#pragma once

#include <map>
#include <memory>
#include <vector>

#include "transport/shm/hub.h"
#include "transport/shm/listener.h"
#include "transport/shm/segment_requests.h"
#include "transport/transport.h"

namespace tutti::shm {

class ShmChannel;

// A `ShmTransport` connects ranks of one host by shared memory.
class ShmTransport final : public Transport, public HelloHandler, public Pollable {
 public:
  // Made by `create`.
  explicit ShmTransport(const Options& options) : hub_(options), requests_(hub_) {}
  // Makes sure that this system can do what is needed, and listens.
  Status prepare();

  std::string_view name() const override { return "shm"; }
  std::string address() const override { return format(hub_.address); }
  Status can_reach(const PeerInfo& peer) const override;
  Status start(Driver& driver, TransportOwner& owner, const MessageLimits& limits) override;
  std::unique_ptr<Channel> open(int peer, std::chrono::nanoseconds connect_timeout) override;
  bool can_share() const override { return true; }
  void share(ShareRequest& request) override { requests_.share(request); }
  void cancel_share(ShareRequest& request, const Status& why) override { requests_.cancel(request, why); }
  void stop() override;

  // For channels: their pipe is open from now on, or not any more; they are going away.
  void opened(ShmChannel& channel) { open_.push_back(&channel); }
  void closed(ShmChannel& channel);
  void forget(int peer, ShmChannel& channel);

 private:
  bool is_peer(const Note& hello) const;
  void on_hello(const Note& hello, std::vector<Descriptor> descriptors, std::unique_ptr<Link> link) override;
  void connect(const Note& hello, std::vector<Descriptor> descriptors, std::unique_ptr<Link> link);
  bool poll() override;
  bool prepare_sleep() override;
  void cancel_sleep() override;
  bool expects_memory() const override { return !open_.empty(); }
  Deadline next_deadline() const override { return hub_.timers.next(); }

  Hub hub_;
  std::unique_ptr<Listener> listener_;
  SegmentRequests requests_;
  std::map<int, ShmChannel*> channels_;
  std::vector<ShmChannel*> open_;  // null: closed since the last pass
};

}  // namespace tutti::shm
