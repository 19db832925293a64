#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "collectives/schedule/algorithms/layout.h"

// This file has the pipeline of rounds that all algorithms over windows use.
namespace tutti {

// A `Part` is the elements [first, first + count) of a vector.
struct Part {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

inline Slice input(const Part& part) { return input(part.first, part.count); }
inline Slice output(const Part& part) { return output(part.first, part.count); }

using Ranks = std::vector<int>;
inline Ranks nobody() { return {}; }
inline Ranks only(int rank) { return {rank}; }
// Returns the other ranks. The first one is the rank after this one, so that each rank begins with a
// different peer.
Ranks everybody(const Problem& problem);
Ranks below(const Problem& problem);
Ranks above(const Problem& problem);

struct RoundsOptions {
  std::uint64_t count = 0;       // elements of the vector (or of the largest block)
  std::uint64_t lanes = 1;       // areas in each rank's window that a round fills
  std::uint64_t depth = 2;       // rounds whose areas are in the window at the same time
  std::uint64_t lane_share = 1;  // a round covers as many elements as this many lanes hold
  bool repeatable = true;        // all rounds but the last have the same steps
};

// `Rounds` cuts a vector into rounds that fit the windows and runs them as a pipeline. In iteration
// t a rank writes the areas of round t. It reads the areas of round t-1 (or t-2), which the others
// wrote in an earlier iteration. Then it signals. An iteration has at most one wait for each peer and
// one signal, however many steps it has.
class Rounds {
 public:
  Rounds(ScheduleBuilder& builder, const Problem& problem, const RoundsOptions& options);

  // Returns the part that round t covers; empty before the first round and after the last.
  Part part(std::uint64_t t) const;
  // Returns `count` elements of a lane of `owner`'s window, for round t.
  Slice lane(int owner, std::uint64_t t, std::uint64_t lane, std::uint64_t count) const;

  // Emits all iterations. The areas of round t are no longer needed after iteration t + lag. `sources` are
  // the ranks whose windows this rank reads; `readers` are the ranks that read this rank's window.
  template <class Body>
  void run(std::uint64_t lag, const Ranks& sources, const Ranks& readers, Body body) const {
    const std::uint64_t block = repeats_ != 0 ? rounds_per_repeat : 0;
    if (repeats_ != 0) {
      builder_.begin_repeat(repeats_, block * round_);
      iterations(0, block, lag, true, sources, readers, body);
      builder_.end_repeat();
    }
    iterations(repeats_ * block, rounds_ - repeats_ * block, lag, false, sources, readers, body);
  }

  // Returns `count` elements rounded up to whole cache lines.
  static std::uint64_t aligned(const Problem& problem, std::uint64_t count);

 private:
  static constexpr std::uint64_t rounds_per_repeat = 64;  // even, and a multiple of every depth

  template <class Body>
  void iterations(std::uint64_t first, std::uint64_t rounds, std::uint64_t lag, bool repeated,
                  const Ranks& sources, const Ranks& readers, Body body) const {
    first_ = first;
    last_ = first + rounds;
    const std::uint32_t before = builder_.signals();
    for (std::uint64_t t = 0; t < rounds + (rounds != 0 ? lag : 0); ++t) {
      await(t, rounds, before, repeated, sources, readers);
      body(first + t);
      // The last iteration needs no signal, since the other ranks see that this rank has ended the operation.
      if (repeated || t + 1 < rounds + lag) builder_.signal();
    }
  }
  void await(std::uint64_t t, std::uint64_t rounds, std::uint32_t before, bool repeated, const Ranks& sources,
             const Ranks& readers) const;

  ScheduleBuilder& builder_;
  const RoundsOptions options_;
  std::uint64_t unit_ = 1;   // elements of a lane
  std::uint64_t round_ = 1;  // elements of the vector that a round covers
  std::uint64_t rounds_ = 0;
  std::uint64_t repeats_ = 0;
  mutable std::uint64_t first_ = 0;  // rounds [first_, last_) are being emitted
  mutable std::uint64_t last_ = 0;
};

}  // namespace tutti
