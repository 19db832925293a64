#pragma once

#include <memory>
#include <vector>

#include "transport/meeting/listener.h"
#include "transport/shm/context.h"
#include "transport/shm/link.h"
#include "transport/shm/segment_requests.h"
#include "transport/transport.h"

namespace tutti::shm {

// An shm `Transport` connects ranks of one host by shared memory.
class Transport final : public tutti::Transport, public meeting::Port, public Pollable {
 public:
  // Only `create` makes transports.
  explicit Transport(const Options& options) : context_(options, *this), requests_(context_) {}
  // Checks that this system supports everything that the transport needs, and starts to listen.
  Status prepare();

  std::string_view name() const override { return "shm"; }
  std::string address() const override { return format(context_.address); }
  Status can_reach(const PeerInfo& peer) const override;
  Status start(Driver& driver, TransportOwner& owner) override;
  std::unique_ptr<tutti::Channel> open(int peer, std::chrono::nanoseconds connect_timeout) override;
  bool can_share() const override { return true; }
  void share(ShareRequest& request) override { requests_.share(request); }
  void cancel_share(ShareRequest& request, const Status& why) override { requests_.cancel(request, why); }
  void stop() override;

 private:
  std::size_t hello_bytes() const override { return sizeof(Note); }
  bool begins_like_hello(std::span<const std::byte> bytes) const override;
  std::optional<std::uint32_t> claimed_rank(std::span<const std::byte> hello) const override;
  void on_hello(meeting::Guest guest) override;
  Descriptor accept(int listener, int& error) const override { return accept_local(listener, error); }
  std::size_t read(meeting::Guest& guest, std::span<std::byte> place, int& error) const override;
  void connect(const Note& hello, std::vector<Descriptor> descriptors, std::unique_ptr<Link> link);
  bool poll() override;
  bool prepare_sleep() override;
  void cancel_sleep() override;
  bool expects_memory() const override { return !context_.channels.open.empty(); }
  Deadline next_deadline() const override { return context_.timers.next(); }

  Context context_;
  std::unique_ptr<meeting::Listener> listener_;
  SegmentRequests requests_;
};

}  // namespace tutti::shm
