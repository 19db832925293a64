#pragma once

#include <memory>

#include <tutti/transport/shm/hub.h>
#include <tutti/transport/shm/listener.h>
#include <tutti/transport/shm/shares.h>
#include <tutti/transport/transport.h>

namespace tutti::shm {

class ShmTransport final : public Transport, public HelloHandler, public Pollable {
 public:
  // Made by `create`.
  explicit ShmTransport(const Options& options) : hub_(options), shares_(hub_) {}
  // Makes sure that this system can do what is needed, and listens.
  Status prepare();

  std::string_view name() const override { return "shm"; }
  std::string address() const override { return format(hub_.address); }
  Status can_reach(const PeerInfo& peer) const override;
  Status start(Driver& driver, TransportOwner& owner, const MessageLimits& limits) override;
  std::unique_ptr<Channel> open(int peer, std::chrono::nanoseconds connect_timeout) override;
  bool can_share() const override { return true; }
  void share(ShareRequest& request) override { shares_.share(request); }
  void stop() override;

 private:
  bool is_peer(const Note& hello) const;
  void on_hello(const Note& hello, std::vector<Descriptor> descriptors, std::unique_ptr<Link> link) override;
  bool poll() override { return hub_.timers.run(); }
  Deadline next_deadline() const override { return hub_.timers.next(); }

  Hub hub_;
  std::unique_ptr<Listener> listener_;
  Shares shares_;
};

}  // namespace tutti::shm
