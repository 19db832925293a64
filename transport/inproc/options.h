#pragma once

#include <cstddef>
#include <memory>

#include "transport/message_limits.h"

namespace tutti::inproc {

class Hub;

// `Options` configure an inproc transport.
struct Options {
  std::shared_ptr<Hub> hub;  // where this rank meets the other ranks
  int rank = 0;
  // `buffer` limits the bytes under way in one direction between two ranks, as a socket's buffer does. A
  // frame that is larger than this limit is sent alone.
  std::size_t buffer = 256 * 1024;
  // For each limit, the smaller of this rank's value and the peer's value applies.
  MessageLimits limits = {};
};

}  // namespace tutti::inproc
