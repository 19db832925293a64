#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/message_limits.h"

namespace tutti::mpi {

class Messenger;

// `Options` configure an MPI transport.
struct Options {
  Messenger* messenger = nullptr;  // outlives the transport
  // This rank posts this many receives, of `packet_bytes` each, for the packets of all peers.
  std::uint32_t receives = 32;
  // A packet is a message of MPI: a part of a frame. The default holds a whole fragment of the default size.
  // MPI's counts are `int`, so a packet must be smaller than 2 GiB.
  std::uint32_t packet_bytes = 128 * 1024 + 128;
  // A peer may send this many packets before this rank has dealt with the first of them.
  std::uint32_t window = 32;
  // For each limit, the smaller of this rank's value and the peer's value applies.
  MessageLimits limits = {};
};

}  // namespace tutti::mpi
