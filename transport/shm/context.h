#pragma once

#include <map>
#include <memory>

#include "transport/meeting/addressed_context.h"
#include "transport/shm/address.h"
#include "transport/shm/bell.h"
#include "transport/shm/channels.h"
#include "transport/shm/options.h"

namespace tutti::shm {

// A `Context` is what the parts of one shm transport share.
struct Context : meeting::AddressedContext<Address, published_by> {
  Context(const Options& from, tutti::Transport& self)
      : AddressedContext(security::Service::memory, from.credentials), options(from), transport(self) {}

  // Returns the rope with which this rank rings a peer's bell. The peer has handed over the bell as the
  // descriptor `bell_of_rank`. One rope per peer is enough: if there is one already, it is returned, and
  // `bell_of_rank` is closed. Returns null if the descriptor is not a bell.
  SharedRope rope_of(int rank, Descriptor bell_of_rank) { return keep(ropes[rank], std::move(bell_of_rank)); }
  // Does the same for a descriptor that the leader of a segment has handed over as the bell of `rank`. The
  // leader may be wrong, so a bell from a leader is used for segments only. If `rank` itself has handed over
  // a bell, the rope for that bell is returned instead.
  SharedRope rope_by_hearsay(int rank, Descriptor bell) {
    if (SharedRope own = ropes[rank].lock()) return own;
    return keep(hearsay[rank], std::move(bell));
  }
  static SharedRope keep(std::weak_ptr<const BellRope>& known, Descriptor bell) {
    if (SharedRope rope = known.lock()) return rope;
    SharedRope rope = BellRope::from(std::move(bell));
    known = rope;
    return rope;
  }

  const Options options;
  tutti::Transport& transport;
  Bell bell;
  Channels channels;
  std::map<int, std::weak_ptr<const BellRope>> ropes;    // handed over by the ranks themselves
  std::map<int, std::weak_ptr<const BellRope>> hearsay;  // handed over by leaders of segments
};

}  // namespace tutti::shm
