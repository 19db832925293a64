#pragma once

#include <cstddef>
#include <memory>

#include "transport/transport.h"

namespace tutti::inproc {

// Where the ranks of one process meet. Thread-safe; lives as long as anybody has it.
class Hub;
std::shared_ptr<Hub> make_hub();

struct Options {
  std::shared_ptr<Hub> hub;
  int rank = 0;
  // Bytes that may be on their way in one direction between two ranks, like a socket's buffer; one frame
  // always may.
  std::size_t buffer = 256 * 1024;
};

// Ranks that are threads of one process: frames are copied into the peer's queue and its driver is woken. The
// reference for the other transports, and the way to test everything above without a network.
std::unique_ptr<Transport> create(Options options);

}  // namespace tutti::inproc
