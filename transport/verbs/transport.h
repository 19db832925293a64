#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/meeting/listeners.h"
#include "transport/transport.h"
#include "transport/verbs/context.h"

namespace tutti::verbs {

// A verbs `Transport` connects ranks by InfiniBand or RoCE, on one host or several.
class Transport final : public tutti::Transport, public meeting::Port, public Pollable {
 public:
  // Only `create` makes transports.
  explicit Transport(const Options& options) : context_(options, *this) {}
  ~Transport() override;
  // Opens the ports of the devices, and starts to listen on every address in `Options::bind`.
  Status prepare();

  std::string_view name() const override { return "verbs"; }
  std::string address() const override { return format(context_.address); }
  std::string facts() const override;
  Status can_reach(const PeerInfo& peer) const override;
  Status start(Driver& driver, TransportOwner& owner) override;
  std::unique_ptr<tutti::Channel> open(int peer, std::chrono::nanoseconds connect_timeout) override;
  Result<std::unique_ptr<RegisteredMemory>> add_memory(std::span<std::byte> region) override {
    return context_.memory->add(region);
  }
  void stop() override;

 private:
  Status open_ports();
  Status open_rails(const Functions& functions, std::vector<DevicePort> ports);
  Status listen();
  std::size_t hello_bytes() const override { return sizeof(Note); }
  bool begins_like_hello(std::span<const std::byte> bytes) const override;
  std::optional<std::uint32_t> claimed_rank(std::span<const std::byte> hello) const override;
  void on_hello(meeting::Guest guest) override;
  bool poll() override;
  bool prepare_sleep() override;
  bool expects_memory() const override;
  Deadline next_deadline() const override { return context_.timers.next(); }

  Context context_;
  meeting::Listeners listeners_;
};

}  // namespace tutti::verbs
