#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tests/prove/expressions.h"
#include "tests/prove/schedule_checker.h"

namespace tutti::test {

// A `Range` is the cells [begin, end) of a memory.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Returns whether two ranges overlap but are not equal.
bool overlap_badly(const Range& a, const Range& b);

// `Memory` is one rank's memory as one array of cells: input and output (one may lie within the other), then
// scratch, then the rank's window.
class Memory {
 public:
  Memory(const ScheduleCase& test, const Schedule& schedule, int rank, Expressions& expressions);

  // Returns the cells of a slice, whichever rank owns the slice. Returns nothing if the slice exceeds its
  // buffer.
  std::optional<Range> range(const Slice& slice) const;

  Expressions::Id& operator[](std::size_t cell) { return cells_[cell]; }
  std::size_t size() const { return cells_.size(); }
  const Range& input() const { return ranges_[0]; }
  const Range& output() const { return ranges_[1]; }
  Expressions::Id initial(std::size_t cell) const { return initial_[cell]; }

  // Returns whether the caller's memory, except for the output, is unchanged.
  bool rest_unchanged() const;

 private:
  void place(const Problem& problem, std::size_t in, std::size_t out);

  std::array<Range, 4> ranges_;  // indexed by BufferId
  std::vector<Expressions::Id> cells_;
  std::vector<Expressions::Id> initial_;
};

// Returns the text "rank 3 step 12: " followed by `what`.
std::string at(int rank, std::size_t step, const std::string& what);

// Returns the value that a step computes from one element of each operand, `left` and `right`.
// `message` is the element that the step receives, if it receives one.
Expressions::Id value_of(const Step& step, Expressions::Id left, Expressions::Id right,
                         Expressions::Id message, Expressions& expressions);
// Returns the error text for a value that is `undefined` or `wrong`.
std::string fault(Expressions::Id value, std::size_t element);

// Checks one rank's schedule without the schedules of the other ranks. Returns an error text, or an
// empty text. The check finds slices that exceed their buffers or partly overlap. It also finds conflicting
// steps without a dependency between them.
std::string check_structure(const Schedule& schedule, const Memory& memory, int rank);

}  // namespace tutti::test
