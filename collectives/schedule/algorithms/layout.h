#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/schedule/problem.h"
#include "collectives/schedule/schedule_builder.h"

// These types cut vectors into slices for the algorithms.
namespace tutti {

inline Slice input(std::uint64_t offset, std::uint64_t count) { return {BufferId::input, offset, count}; }
inline Slice output(std::uint64_t offset, std::uint64_t count) { return {BufferId::output, offset, count}; }
inline Slice sub_slice(const Slice& whole, std::uint64_t offset, std::uint64_t count) {
  return {whole.buffer, whole.offset + offset, count, whole.owner};
}

// Returns the rank that is `shift` places after `rank`, where rank 0 comes after the last rank. `shift` may
// be negative, but not below -`size`.
inline int shifted(int rank, int shift, int size) { return (rank + shift + size) % size; }

// Returns the k of k-nomial patterns. It is at least 2, and at most 64. So its product with the number of
// ranks fits into an int.
inline int radix_of(const Tuning& tuning) {
  return static_cast<int>(std::clamp<std::uint32_t>(tuning.radix, 2, 64));
}

// `Blocks` divides a vector into one block per rank, packed in rank order.
class Blocks {
 public:
  static Blocks uniform(std::uint64_t count, int size);
  // Returns blocks of `total` elements, as equal as possible. Larger blocks come first; blocks may be empty.
  static Blocks balanced(std::uint64_t total, int size);
  static Blocks packed(std::span<const std::uint64_t> counts);

  std::uint64_t offset(int i) const { return offsets_[static_cast<std::size_t>(i)]; }
  std::uint64_t count(int i) const { return offset(i + 1) - offset(i); }
  std::uint64_t total() const { return offsets_.back(); }
  std::uint64_t largest() const;

  // `whole` must hold all blocks. The first function returns block i, and the second returns the
  // blocks [first, last).
  Slice of(const Slice& whole, int i) const { return sub_slice(whole, offset(i), count(i)); }
  Slice of(const Slice& whole, int first, int last) const {
    return sub_slice(whole, offset(first), offset(last) - offset(first));
  }
  Slice in_input(int i) const { return input(offset(i), count(i)); }
  Slice in_output(int i) const { return output(offset(i), count(i)); }

 private:
  std::vector<std::uint64_t> offsets_ = {0};
};

// `Segments` cuts slices into the units of a pipeline.
class Segments {
 public:
  // Cuts slices of at most `largest` elements into units of tuning.segment_bytes. A rank handles `passes`
  // such slices. For long vectors the units are larger, so that there are at most 4,096 units in total.
  Segments(const Problem& problem, const Tuning& tuning, std::uint64_t largest, std::uint64_t passes = 1);

  std::uint64_t unit() const { return unit_; }
  std::uint64_t count(const Slice& whole) const {
    return whole.count / unit_ + (whole.count % unit_ != 0 ? 1 : 0);
  }
  Slice at(const Slice& whole, std::uint64_t i) const {
    return sub_slice(whole, i * unit_, std::min(unit_, whole.count - i * unit_));
  }

 private:
  std::uint64_t unit_;
};

// `Slots` is scratch memory that the segments of a pipeline use in turn. `ScheduleBuilder` makes each step
// wait until its slot is free.
class Slots {
 public:
  Slots(ScheduleBuilder& builder, std::uint64_t count, std::uint64_t slots);
  Slice next(std::uint64_t count);

 private:
  std::vector<Slice> slots_;
  std::size_t next_ = 0;
};

// `Alternation` holds the buffers of an algorithm that replaces its whole vector `stages` times. Each stage
// sends the old value while it receives into the new one, so no receive has to wait for a send. The vector
// starts in the input and ends in the output.
class Alternation {
 public:
  Alternation(ScheduleBuilder& builder, const Problem& problem, int stages);
  const Slice& current() const { return current_; }
  // Returns the slice that the next stage must write. The algorithm must call `advance` after it has emitted
  // the steps of that stage.
  const Slice& next() const { return next_; }
  void advance();

 private:
  ScheduleBuilder& builder_;
  std::uint64_t count_;
  int left_;
  Slice current_;
  Slice next_;
  Slice spare_;
};

}  // namespace tutti
