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

// Calls the launcher at its endpoints in turn, over and over, until a connection has passed the guard and the
// hello has been sent on it. Blocks meanwhile. Returns `timeout` at the limit, with the last reason of each
// endpoint, and `aborted` if the call was given up. If the process that answers cannot prove the secret, the
// calls go on: in another network, an address of the launcher may belong to another machine; and the launcher
// itself may not know the secret yet.
Result<meeting::Connection> dial(const Call& call);

}  // namespace tutti::tools
