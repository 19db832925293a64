#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/address.h>
#include <tutti/config_values.h>
#include <tutti/credentials.h>
#include <tutti/status.h>

#include "transport/driver/event_loop.h"
#include "transport/meeting/listener.h"

namespace tutti::tools {

struct CallbackOptions {
  std::optional<PortRange> ports = {};  // TUTTI_PORT_RANGE
  // An agent that has connected must prove its secret within this time.
  std::chrono::nanoseconds proof_limit = meeting::ListenerOptions{}.hello_limit;
};

// A `Callback` accepts the connections of the agents that the launcher has started. An agent must
// prove that it knows the secret of its host. Only one agent is accepted for each host.
class Callback final : private meeting::Port, private Timer {
 public:
  // Called with the connection of a host whose agent has proved its secret. The owner may destroy the
  // callback in this call.
  using OnAgent = std::function<void(std::uint32_t host, meeting::Connection connection)>;

  // Listens on each of `addresses`, on the same port if that port is free on all of them. It leaves
  // out addresses that cannot be used. Fails if no address remains, or with `resource_exhausted`.
  static Result<std::unique_ptr<Callback>> open(EventLoop& loop, std::span<const SocketAddress> addresses,
                                                const std::string& job, OnAgent on_agent,
                                                const CallbackOptions& options = {});
  ~Callback() override;

  // Returns the addresses with their ports, in the form that the agents' command lines use.
  std::vector<std::string> endpoints() const;
  // Sets the secret that an agent of the host must prove. It replaces the host's earlier secret.
  // The call has no effect if an agent of the host has already been accepted.
  Status expect(std::uint32_t host, std::string_view secret);

 private:
  // An `Arrival` is an accepted connection that the owner has not been told of.
  struct Arrival {
    std::uint32_t host;
    meeting::Connection connection;
  };

  Callback(EventLoop& loop, std::string job, OnAgent on_agent);

  Status listen(Descriptor socket, std::chrono::nanoseconds proof_limit);

  std::size_t hello_bytes() const override;
  bool begins_like_hello(std::span<const std::byte> bytes) const override;
  std::optional<std::uint32_t> claimed_rank(std::span<const std::byte> hello) const override;
  void on_hello(meeting::Guest guest) override;
  void on_timer() override;

  EventLoop& loop_;
  const std::string job_;
  const OnAgent on_agent_;
  std::map<std::uint32_t, security::SharedCredentials> expected_;
  std::set<std::uint32_t> accepted_;
  std::deque<Arrival> arrivals_;
  std::vector<std::unique_ptr<meeting::Listener>> listeners_;
};

}  // namespace tutti::tools
