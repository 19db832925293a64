#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace tutti {

// `AccessHistory` knows which steps last touched which elements of one address space. It keeps disjoint
// intervals, each with the step that wrote it and the steps that have read it since. Steps must be given in
// the order in which the algorithm emits them. A read splits at most two intervals, and a write merges all
// intervals that it covers. So n steps take a time of about n log n.
class AccessHistory {
 public:
  // These two functions note an access by `step`, and append to `after` the earlier steps that `step` must
  // wait for. A step may be appended several times.
  void read(std::uint64_t begin, std::uint64_t end, std::uint32_t step, std::vector<std::uint32_t>& after);
  void write(std::uint64_t begin, std::uint64_t end, std::uint32_t step, std::vector<std::uint32_t>& after);

 private:
  static constexpr std::uint32_t nobody = UINT32_MAX;
  struct Interval {
    std::uint64_t end;
    std::uint32_t writer = nobody;
    std::vector<std::uint32_t> readers;
  };
  using Intervals = std::map<std::uint64_t, Interval>;  // the key is where the interval begins

  void split(std::uint64_t at);

  Intervals intervals_;
};

}  // namespace tutti
