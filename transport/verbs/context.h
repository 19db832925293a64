#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "transport/channel_map.h"
#include "transport/meeting/addressed_context.h"
#include "transport/verbs/address.h"
#include "transport/verbs/dead_paths.h"
#include "transport/verbs/options.h"
#include "transport/verbs/pipe.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/rail_memory.h"

namespace tutti::verbs {

class Channel;

// A `Context` is what the parts of one verbs transport share.
struct Context : meeting::AddressedContext<Address, published_by> {
  Context(const Options& from, tutti::Transport& self)
      : AddressedContext(security::Service::data, from.credentials), options(from), transport(self) {}

  // Returns the pairs of ports by which this rank and that peer are connected. The list is empty if the peer
  // has published no valid address.
  std::vector<RailPair> pairs_with(int rank) const {
    const auto theirs = published_by(peer(rank));
    return theirs ? pair_rails(address, *theirs, owner->rank() < rank) : std::vector<RailPair>();
  }
  // Returns the address of this kind that a port of this rank has, or null if the port has none.
  const Gid* gid_of(std::size_t rail, std::uint8_t kind) const {
    for (const Gid& gid : rails[rail]->port().gids) {
      if (static_cast<std::uint8_t>(gid.kind) == kind) return &gid;
    }
    return nullptr;
  }
  // Makes a pipe for one of the pairs of ports.
  Result<std::unique_ptr<Pipe>> make_pipe(const std::vector<RailPair>& pairs, std::size_t index,
                                          const Gid& gid, PipeEvents& events) {
    const RailPair& pair = pairs[index];
    const bool several = pairs.size() > 1;
    const PipeOptions pipe{
        options.settings, options.slots, options.slot_bytes, index, several ? pair.theirs : 0,
        pair.ours,        several};
    return Pipe::create(*rails[pair.ours], memory->of(pair.ours), pipe, gid, events);
  }
  // Handles the completions that have arrived until now.
  void drain() {
    for (const auto& rail : rails) rail->drain();
  }
  // Closes a pipe, and destroys it only at the next poll, since one of its functions may still be on the
  // stack. `pipe` may be null.
  void discard(std::unique_ptr<Pipe> pipe) {
    if (pipe == nullptr) return;
    pipe->close();
    discarded.push_back(std::move(pipe));
  }

  const Options options;
  tutti::Transport& transport;
  std::vector<std::unique_ptr<Rail>> rails;  // never empty once the transport is prepared
  std::unique_ptr<RailMemory> memory;
  DeadPaths dead_paths;
  std::vector<std::unique_ptr<Pipe>> discarded;
  ChannelMap<Channel> channels;
};

}  // namespace tutti::verbs
