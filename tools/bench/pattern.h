#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tutti/reduce_op.h>
#include <tutti/types.h>

namespace tutti::tools {

// `Pattern` is the test data: element `index` of rank `rank`'s input, for any index. Every order of combining
// gives the same bits: sums stay exact in the type, and products have few twos. It differs between ranks and,
// by a hash, between places, so that blocks in the wrong place are noticed.
class Pattern {
 public:
  Pattern(DataType type, const ReduceOp& op, int ranks);

  DataType type() const { return type_; }
  // Writes elements of a rank's input from `first` on.
  void fill(int rank, std::uint64_t first, std::span<std::byte> out) const;
  // Writes elements of the reduction over the inputs of ranks first_rank to last_rank, both included.
  void fill_reduced(int first_rank, int last_rank, std::uint64_t first, std::span<std::byte> out) const;

 private:
  std::uint64_t value(int rank, std::uint64_t index) const;

  DataType type_;
  ReduceOp op_;
  int ranks_;
  std::uint64_t values_;  // inputs are below it; 0: see `value`
};

// `Checker` compares an operation's result with the right one, piece by piece.
class Checker {
 public:
  explicit Checker(const Pattern& pattern) : pattern_(pattern) {}

  // The number of elements of `data` that differ from the rank's input from `first` on.
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
