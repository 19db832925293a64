#pragma once

#include <cstddef>
#include <memory>

#include "transport/meeting/addressed_context.h"
#include "transport/tcp/address.h"
#include "transport/tcp/channels.h"
#include "transport/tcp/congestion.h"
#include "transport/tcp/options.h"

namespace tutti::tcp {

// A `Context` is what the parts of one tcp transport share.
struct Context : meeting::AddressedContext<Address, published_by> {
  // Some received bytes cannot be read directly into the memory of a receive. They pass through the scratch
  // buffer. A channel keeps nothing in it between two calls, so one buffer serves all channels and stays in
  // the cache.
  static constexpr std::size_t scratch_bytes = 128 * 1024;

  explicit Context(const Options& from)
      : AddressedContext(security::Service::data, from.credentials),
        options(from),
        congestion(from.congestion),
        scratch(new (std::align_val_t(64)) std::byte[scratch_bytes]) {}

  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(64)); }
  };

  const Options options;
  const Congestion congestion;
  std::unique_ptr<std::byte[], Free> scratch;
  Channels channels;
};

}  // namespace tutti::tcp
