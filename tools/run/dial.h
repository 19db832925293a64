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
  std::vector<std::string> endpoints;  // the addresses of the launcher, such as "10.0.0.9:41873"
  std::string job;
  std::uint32_t host = 0;
  std::string secret;
  int abandoned = -1;  // the write end of a pipe; the call is given up when the pipe has no reader
  std::chrono::nanoseconds limit = std::chrono::seconds(30);
};

// Calls the launcher at its endpoints in turn, and blocks until a call succeeds. In a successful
// call, both sides have proved the secret, and the hello has been sent. Returns `timeout` at the limit, with
// the last error of each endpoint. Returns `aborted` if the call was given up. A process that
// answers but cannot prove the secret does not end the calls, for two reasons. An address of the
// launcher may belong to another machine in this network, and the launcher itself may not know the
// secret yet.
Result<meeting::Connection> dial(const Call& call);

}  // namespace tutti::tools
