#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::test {

// `Clocks` are vector clocks over the signals of ranks that share memory. They say what each rank
// can know about the other ranks from the signals that it has awaited. A rank that awaits the third
// signal knows only about work before the third signal, even if the fifth signal has already been
// given. So the races that are found do not depend on the order in which the ranks happen to run.
class Clocks {
 public:
  explicit Clocks(std::size_t ranks);

  // Returns the number of the current span of `rank`. A span is the time between two signals of a rank.
  std::uint32_t now(std::size_t rank) const { return known_[rank][rank]; }
  std::uint32_t signals(std::size_t rank) const { return static_cast<std::uint32_t>(given_[rank].size()); }
  void signal(std::size_t rank);
  // Records that `rank` has awaited the first `signals` signals of `peer`. `peer` must have given at least
  // that many signals.
  void await(std::size_t rank, std::size_t peer, std::uint32_t signals);
  // Returns whether `rank` can know that `peer` has completed everything that it did in its span `when`.
  bool knows(std::size_t rank, std::size_t peer, std::uint32_t when) const {
    return rank == peer || known_[rank][peer] >= when;
  }
  // Returns whether `rank` knows about any signal of `peer`.
  bool has_heard_of(std::size_t rank, std::size_t peer) const { return known_[rank][peer] != 0; }

 private:
  using Clock = std::vector<std::uint32_t>;  // by rank
  std::vector<Clock> known_;
  std::vector<std::vector<Clock>> given_;  // the knowledge of a rank at each of its signals
};

// An `Access` says which rank accessed a cell, and when.
struct Access {
  std::size_t rank = 0;
  std::uint32_t when = 0;  // a value of Clocks::now; 0 if no rank has accessed the cell
  std::uint32_t step = 0;
};

// An `AccessLog` knows which ranks accessed each cell of a memory last. If at least one of two
// accesses to a cell is a write, signals must order the two. If they are not ordered, `read` and
// `write` return the earlier access. Otherwise these functions return null.
class AccessLog {
 public:
  AccessLog(const Clocks& clocks, std::size_t cells) : clocks_(clocks), cells_(cells) {}

  const Access* read(std::size_t cell, const Access& by);
  const Access* write(std::size_t cell, const Access& by);
  // Returns an access to the cell that may take place after `rank` has left the operation, or null if there
  // is no such access.
  const Access* after(std::size_t cell, std::size_t rank) const;

 private:
  struct Cell {
    Access writer;
    std::vector<Access> readers;  // the last read by each rank since `writer` wrote
  };
  bool ordered(const Access& earlier, std::size_t rank) const {
    return clocks_.knows(rank, earlier.rank, earlier.when);
  }

  const Clocks& clocks_;
  std::vector<Cell> cells_;
};

}  // namespace tutti::test
