#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

namespace tutti {

// A `SharedSegment` is memory that all members of a group on one host have mapped, and a bell at the driver
// of each of them: the one-sided part of a transport. The driving thread destroys it, in any order among the
// members.
class SharedSegment {
 public:
  virtual ~SharedSegment() = default;
  // The same bytes at every member, page aligned; zero when new.
  virtual std::span<std::byte> memory() const = 0;
  // Makes the driver of a member (an index into the request's members) look at its pollables, also when it
  // sleeps. Any thread; a few hundred nanoseconds, so for sleepers only.
  virtual void ring(int member) = 0;
};

// `SharedSegmentEvents` tells the owner of a segment about the other members, on the driving thread.
class SharedSegmentEvents {
 public:
  virtual ~SharedSegmentEvents() = default;
  // A member died without having released the segment. Not every member is told; one that is told must tell
  // the others.
  virtual void on_member_lost(int member, const Status& why) = 0;
};

// A `ShareRequest` is the request of all members to share a segment: a node that its caller owns, and keeps
// until `done`.
struct ShareRequest {
  std::uint64_t key = 0;     // names this segment among all that its members ever share
  std::vector<int> members;  // world ranks, in the same order everywhere
  std::uint64_t bytes = 0;   // equal everywhere
  Deadline deadline = Deadline::never();
  SharedSegmentEvents* events = nullptr;  // outlives the segment
  // The driving thread calls it exactly once, possibly from within `share`: every member gets the segment, or
  // all of them are refused, with the reason if it is known.
  void (*done)(ShareRequest& request, Result<std::unique_ptr<SharedSegment>> segment) = nullptr;
};

}  // namespace tutti
