#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collectives/run/arena.h"
#include "control/desk.h"
#include "transport/shared_segment.h"

namespace tutti {

class SharedRange;

// `HostMemory` is the memory that all ranks of a world on this host share: one segment for all of the world's
// communicators. A communicator whose ranks are on one host has a range of the segment, if there is room.
// Each rank hands out ranges from its own arena. docs/seams/communicators.md describes how ranks agree on a
// range, and how they give it back.
//
// Only the driving thread calls these functions, except where a comment says otherwise.
class HostMemory final : public SharedSegmentEvents {
 public:
  explicit HostMemory(const ControlDesk& desk) : desk_(desk) {}

  // Makes `request` ask for the segment of `members`, the ranks of this host in ascending order. `rank` is
  // this rank. The segment's first range has `first_bytes` bytes, whose pages are allocated at once. The
  // members' arenas follow, `room` bytes in total. Both sizes must be equal on all members. Any thread may
  // call it.
  void prepare(ShareRequest& request, std::vector<int> members, int rank, std::uint64_t first_bytes,
               std::uint64_t room);
  // Takes the segment that `prepare` has requested. The ranks share it from now on.
  void open(std::unique_ptr<SharedSegment> segment);

  // Returns whether all these ranks share the segment. Any thread may call it.
  bool is_shared_by(std::span<const int> ranks) const;
  // Returns the size in bytes of the largest range that this rank can hand out now, or -1 if it has no
  // segment.
  std::int64_t room();
  // Returns the size in bytes of a range that offers `bytes` bytes to `members` members. Any thread may call
  // it.
  static std::uint64_t range_bytes(std::size_t members, std::uint64_t bytes);
  // Hands out a range that no communicator uses. Returns its place, or nothing if there is no room.
  std::optional<std::uint64_t> take(std::uint64_t range_bytes);
  // Returns the place of the segment's first range.
  std::uint64_t first_place() const { return words_bytes(members_.size()); }
  // Takes back a range that no rank has joined.
  void cancel(std::uint64_t place);
  // Joins the range at `place`, which a rank has handed out for `ranks`. `own` is this rank's position in
  // `ranks`. The range has `bytes` bytes, which are zero. `events` learns of members that die. Fails with
  // `protocol_error` if no such range can exist.
  Result<std::unique_ptr<SharedSegment>> join(std::uint64_t place, std::span<const int> ranks, int own,
                                              std::uint64_t bytes, SharedSegmentEvents& events);

  void on_member_lost(int member, const Status& why) override;

 private:
  friend class SharedRange;

  // The segment begins with a `Word` for each member.
  struct Word {
    alignas(64) std::atomic<std::uint64_t> given_back;  // counts the member's ranges that are free again
  };

  static std::uint64_t words_bytes(std::size_t members);
  std::optional<std::size_t> position_of(int world_rank) const;
  std::uint64_t arena_begin(std::size_t member) const { return arenas_begin_ + member * arena_bytes_; }
  Result<Word*> giver_of(std::uint64_t place, std::uint64_t range_bytes) const;
  bool is_lost(std::size_t member) const;
  Word& word(std::size_t member) const;
  void reclaim();

  const ControlDesk& desk_;
  std::vector<int> members_;  // world ranks
  std::size_t own_ = 0;       // this rank's position among them
  std::uint64_t arenas_begin_ = 0;
  std::uint64_t arena_bytes_ = 0;  // the size of each member's arena
  std::unique_ptr<SharedSegment> segment_;
  Arena arena_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> handed_out_;  // places and sizes in bytes
  std::uint64_t reclaimed_ = 0;       // value of this rank's `given_back` when `reclaim` last read it
  std::vector<bool> lost_;            // whether a member is lost, by position
  std::vector<SharedRange*> ranges_;  // the ranges that this rank uses
};

// A `SharedRange` is a communicator's part of the host's memory. The communicator's ranks are its members.
class SharedRange final : public SharedSegment {
 public:
  // Only `HostMemory` makes ranges. `positions` are the members' positions among the host's ranks. `giver` is
  // the word of the rank that has handed out the range, or null if the range cannot be handed out again.
  SharedRange(HostMemory& host, HostMemory::Word* giver, std::span<std::byte> all,
              std::vector<std::size_t> positions, std::size_t own, SharedSegmentEvents& events);
  // Tells the other members that this member has released the range. The last member that releases the range
  // frees its pages.
  ~SharedRange() override;

  std::span<std::byte> memory() const override { return all_.subspan(head_bytes(positions_.size())); }
  const SharedBell& bell(int member) const override {
    return host_.segment_->bell(static_cast<int>(positions_[static_cast<std::size_t>(member)]));
  }
  void on_lost(std::size_t position, const Status& why);

  // A range begins with a `Head`. A word for each member follows: 1 if the member has released the range.
  struct Head {
    std::atomic<std::uint32_t> left;      // counts the members that no longer touch the range
    std::atomic<std::uint32_t> reusable;  // 1 once the pages are free and no rank will write to them any more
  };
  static Head& head_of(std::span<std::byte> range);
  // Returns the size in bytes of a head and the words of `members` members.
  static std::uint64_t head_bytes(std::size_t members);

 private:
  std::atomic<std::uint32_t>& released(std::size_t member) const;

  HostMemory& host_;
  HostMemory::Word* const giver_;
  const std::span<std::byte> all_;
  const std::vector<std::size_t> positions_;
  const std::size_t own_;
  SharedSegmentEvents& events_;
};

}  // namespace tutti
