#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tutti/reduce_op.h>
#include <tutti/types.h>

namespace tutti::tools {

// `Pattern` is the test data: it computes any element of any rank's input. A reduction of these
// inputs gives the same bits, whatever the order in which they are combined. The reason is that
// integers wrap around, floating-point sums stay exact, and the factors of floating-point products
// are 1 or 2. Inputs differ between ranks. A hash makes them differ between indices too, so that a
// check notices a block in the wrong place.
class Pattern {
 public:
  Pattern(DataType type, const ReduceOp& op, int ranks);

  DataType type() const { return type_; }
  // Fills `out` with the elements of a rank's input, starting at index `first`.
  void fill(int rank, std::uint64_t first, std::span<std::byte> out) const;
  // Fills `out` with the reduction of the inputs of `first_rank` to `last_rank` (both included), starting at
  // index `first`.
  void fill_reduced(int first_rank, int last_rank, std::uint64_t first, std::span<std::byte> out) const;

 private:
  std::uint64_t value(int rank, std::uint64_t index) const;

  DataType type_;
  ReduceOp op_;
  int ranks_;
  // Inputs are less than this number; 0 means that only one rank contributes at each index (see `value`).
  std::uint64_t values_;
};

// `Checker` compares the result of an operation with the right result, piece by piece, and counts the wrong
// elements.
class Checker {
 public:
  explicit Checker(const Pattern& pattern) : pattern_(pattern) {}

  // `expect_input` compares `data` with the input of `rank`. `expect_reduced` compares it with the reduction
  // of the inputs of `first_rank` to `last_rank`. Both start at index `first` of the pattern. Each element
  // that differs adds 1 to `wrong()`.
  void expect_input(const std::byte* data, std::uint64_t count, int rank, std::uint64_t first);
  void expect_reduced(const std::byte* data, std::uint64_t count, int first_rank, int last_rank,
                      std::uint64_t first);
  std::uint64_t wrong() const { return wrong_; }

 private:
  template <class Fill>
  void compare(const std::byte* data, std::uint64_t count, std::uint64_t first, const Fill& fill);

  const Pattern& pattern_;
  std::vector<std::byte> expected_;
  std::uint64_t wrong_ = 0;
};

}  // namespace tutti::tools
