#pragma once

#include <memory>

#include "transport/meeting/listeners.h"
#include "transport/tcp/address.h"
#include "transport/tcp/context.h"
#include "transport/tcp/handshake.h"
#include "transport/transport.h"

namespace tutti::tcp {

// A tcp `Transport` connects ranks by TCP, on one host or several.
class Transport final : public tutti::Transport, public meeting::Port, public Pollable {
 public:
  // Only `create` (transport/tcp/factory.h) makes transports.
  explicit Transport(const Options& options) : context_(options) {}
  ~Transport() override;
  // Starts to listen on every address in `Options::bind`.
  Status listen();

  std::string_view name() const override { return "tcp"; }
  std::string address() const override { return format(context_.address); }
  Status can_reach(const PeerInfo& peer) const override;
  Status start(Driver& driver, TransportOwner& owner) override;
  std::unique_ptr<tutti::Channel> open(int peer, std::chrono::nanoseconds connect_timeout) override;
  void stop() override;

 private:
  Verdict judge(const Hello& hello);
  std::size_t hello_bytes() const override { return tcp::hello_bytes; }
  bool begins_like_hello(std::span<const std::byte> bytes) const override;
  std::optional<std::uint32_t> claimed_rank(std::span<const std::byte> hello) const override;
  void on_hello(meeting::Guest guest) override;
  bool poll() override;
  bool expects_descriptors() const override { return context_.channels.is_full(); }
  Deadline next_deadline() const override { return context_.timers.next(); }

  Context context_;
  meeting::Listeners listeners_;
};

}  // namespace tutti::tcp
