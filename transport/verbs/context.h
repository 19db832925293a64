#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "transport/channel_map.h"
#include "transport/meeting/addressed_context.h"
#include "transport/verbs/address.h"
#include "transport/verbs/dead_paths.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/options.h"
#include "transport/verbs/pipe.h"
#include "transport/verbs/rail.h"

namespace tutti::verbs {

class Channel;

// A `Context` is what the parts of one verbs transport share.
struct Context : meeting::AddressedContext<Address, published_by> {
  Context(const Options& from, tutti::Transport& self)
      : AddressedContext(security::Service::data, from.credentials), options(from), transport(self) {}

  // Returns this rank's address of that kind, or null if it has none.
  const Gid* gid_of(std::uint8_t kind) const {
    for (const Gid& gid : rail->port().gids) {
      if (static_cast<std::uint8_t>(gid.kind) == kind) return &gid;
    }
    return nullptr;
  }
  Result<std::unique_ptr<Pipe>> make_pipe(const Gid& gid, PipeEvents& events) {
    return Pipe::create(*rail, *memory, {options.settings, options.slots, options.slot_bytes}, gid, events);
  }
  // Closes a pipe, and destroys it at the next poll: one of its functions may still be on the stack. `pipe`
  // may be null.
  void discard(std::unique_ptr<Pipe> pipe) {
    if (pipe == nullptr) return;
    pipe->close();
    discarded.push_back(std::move(pipe));
  }

  const Options options;
  tutti::Transport& transport;
  std::unique_ptr<Rail> rail;
  std::shared_ptr<Memory> memory;
  DeadPaths dead_paths;
  std::vector<std::unique_ptr<Pipe>> discarded;
  ChannelMap<Channel> channels;
};

}  // namespace tutti::verbs
