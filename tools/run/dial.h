#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "transport/meeting/connection.h"

namespace tutti::tools {

// A `Call` says where and how an agent calls its launcher back.
struct Call {
  std::vector<std::string> endpoints;  // of the launcher: "10.0.0.9:41873"
  std::string job;
  std::uint32_t host = 0;
  std::string secret;
  int abandoned = -1;  // a descriptor, the write end of a pipe: once nobody reads it, the call is given up
  std::chrono::nanoseconds limit = std::chrono::seconds(30);
};

// Calls the launcher at its endpoints, in turn and again, until one of them has passed the guard and got the
// hello. Blocks meanwhile. Returns `timeout` at the limit, with the last reason, and `cancelled` if the call
// was given up.
Result<meeting::Connection> dial(const Call& call);

}  // namespace tutti::tools
