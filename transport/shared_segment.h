#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

namespace tutti {

// A `SharedBell` wakes one rank.
class SharedBell {
 public:
  virtual ~SharedBell() = default;
  // Makes the rank's driver poll, even if it sleeps. Any thread may call it. A call takes a few hundred
  // nanoseconds, so ring only for a rank that sleeps.
  virtual void ring() const = 0;
};

// A `SharedSegment` is memory that all members of a group on one host have mapped. It also has a bell for
// each member. Each member has its own object, which only that member's driving thread may destroy. The
// members may destroy their objects in any order.
class SharedSegment {
 public:
  virtual ~SharedSegment() = default;
  // Returns the memory that all members share. It is page aligned, and zero when new.
  virtual std::span<std::byte> memory() const = 0;
  // Returns a member's bell, which lives as long as the segment. `member` is an index into
  // `ShareRequest::members`.
  virtual const SharedBell& bell(int member) const = 0;
  // Zeroes `part`, which must consist of whole pages, for all members. Some transports also free the pages.
  virtual void discard(std::span<std::byte> part) { std::ranges::fill(part, std::byte{0}); }
};

// `SharedSegmentEvents` notifies the owner of a segment about the other members, on the driving thread.
class SharedSegmentEvents {
 public:
  virtual ~SharedSegmentEvents() = default;
  // A member died before it released the segment. All members are notified, unless the leader (the first
  // member) died or released the segment earlier.
  virtual void on_member_lost(int member, const Status& why) = 0;
};

// A `ShareRequest` is one member's request for a segment. Every member makes such a request. The caller owns
// the request, and keeps it until `done` is called.
struct ShareRequest {
  std::uint64_t key = 0;     // differs from the keys of all other segments of these members
  std::vector<int> members;  // world ranks, in the same order on all members
  std::uint64_t bytes = 0;   // equal on all members
  // The pages of the first `provided` bytes are allocated at once. All other pages are allocated when they
  // are first touched. The value is equal on all members.
  std::uint64_t provided = std::numeric_limits<std::uint64_t>::max();
  Deadline deadline = Deadline::never();
  SharedSegmentEvents* events = nullptr;  // outlives the segment
  // The driving thread calls `done` exactly once, possibly from within `share`. Either every member gets the
  // segment, or all of them get an error, with the reason if it is known.
  void (*done)(ShareRequest& request, Result<std::unique_ptr<SharedSegment>> segment) = nullptr;
};

}  // namespace tutti
