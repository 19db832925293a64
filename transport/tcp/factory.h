#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tutti/core/status.h>
#include <tutti/transport/transport.h>

namespace tutti::tcp {

struct Options {
  // The numeric addresses to listen on, one listener each; peers try them in this order.
  std::vector<std::string> bind = {"127.0.0.1"};
  // What peers are told instead, where it differs (NAT, a service's name): addresses or names, which are
  // resolved here and now. One stands for the first listener, the next for the second, and so on.
  std::vector<std::string> advertise;
  // Ports to choose from; zero: any.
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
  // Kernel buffer per direction and connection; zero leaves it to the kernel, which adapts it.
  int socket_buffer = 0;
  // Tells this job's connections from those of another job, which may have got a port of ours after a crash.
  // Equal on all ranks.
  std::array<std::byte, 16> session{};
  // Whoever connects must have said who it is after this long.
  std::chrono::milliseconds handshake_timeout{5000};
};

// Binds and listens, so that the address can be published; answers nobody before `start`.
Result<std::unique_ptr<Transport>> create(const Options& options);

}  // namespace tutti::tcp
