#pragma once

#include <cstddef>
#include <memory>

#include "transport/transport.h"

// The inproc transport: ranks are threads of one process, frames are copied into the peer's queue, and its
// driver is woken. It is the reference for the other transports, and the way to test everything above without
// a network.
namespace tutti::inproc {

// A `Hub` is where the ranks of one process meet. It is thread-safe, and lives as long as anybody has it.
class Hub;
std::shared_ptr<Hub> make_hub();

struct Options {
  std::shared_ptr<Hub> hub;
  int rank = 0;
  // Bytes that may be on their way in one direction between two ranks, like a socket's buffer; one frame
  // always may.
  std::size_t buffer = 256 * 1024;
};

std::unique_ptr<Transport> create(Options options);

}  // namespace tutti::inproc
