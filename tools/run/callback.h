#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tutti/address.h>
#include <tutti/credentials.h>
#include <tutti/status.h>

#include "transport/driver/event_loop.h"
#include "transport/meeting/listener.h"

namespace tutti::tools {

// A `Callback` accepts the connections of the agents that the launcher has started. An agent is accepted if
// it proves that it has the secret of its host.
class Callback final : private meeting::Port {
 public:
  // Called with the connection of a host whose agent has proved its secret.
  using OnAgent = std::function<void(std::uint32_t host, meeting::Connection connection)>;

  // Listens on each of `addresses`, on the same port if that is free on all of them. The ports are those that
  // `ports` (TUTTI_PORT_RANGE) allows.
  static Result<std::unique_ptr<Callback>> open(EventLoop& loop, std::span<const SocketAddress> addresses,
                                                const std::string& job, OnAgent on_agent);
  ~Callback() override;

  // Returns the addresses with their ports, as they stand on the agents' command lines.
  std::vector<std::string> endpoints() const;
  // From now on an agent of the host must prove this secret. It replaces the host's earlier one.
  Status expect(std::uint32_t host, std::string_view secret);
  // Nobody is accepted for the host any more.
  void forget(std::uint32_t host);

 private:
  // Private members follow from the implementation.
};

}  // namespace tutti::tools
