#pragma once

#include <cstddef>
#include <memory>

#include "transport/tcp/address.h"
#include "transport/tcp/channels.h"
#include "transport/tcp/congestion.h"
#include "transport/tcp/options.h"
#include "transport/transport_context.h"

namespace tutti::tcp {

// A `Context` is what the parts of one tcp transport share.
struct Context : TransportContext {
  // Received bytes that are not read directly into the receive's memory pass through the scratch buffer. A
  // channel keeps nothing in it between two calls, so one buffer serves all channels and stays in the cache.
  static constexpr std::size_t scratch_bytes = 128 * 1024;

  explicit Context(const Options& from)
      : options(from),
        congestion(from.congestion),
        scratch(new (std::align_val_t(64)) std::byte[scratch_bytes]) {}

  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(64)); }
  };

  // Returns the limits of messages between this rank and a peer.
  MessageLimits limits_with(int rank) const {
    const auto theirs = published_by(peer(rank));
    return theirs ? minimum(address.limits, theirs->limits) : address.limits;
  }

  const Options options;
  const Congestion congestion;
  Address address;  // ours, as published
  std::unique_ptr<std::byte[], Free> scratch;
  Channels channels;
};

}  // namespace tutti::tcp
