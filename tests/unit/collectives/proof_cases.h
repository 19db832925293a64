#pragma once

#include <vector>

#include "tests/prove/schedule_checker.h"

// These are the cases for the proofs of algorithms.
namespace tutti::test {

// A `Variant` describes the reduction of an operation.
struct Variant {
  bool commutative = true;
  bool average = false;
  bool premultiplied = false;
  void apply(Problem& problem) const;
};

// Returns the variants to prove, of those that the algorithm supports.
std::vector<Variant> variants_for(const Algorithm& algorithm);
// Returns the roots to prove: the first rank, the last rank, and a rank in the middle. Returns only
// rank 0 for kinds without a root.
std::vector<int> roots_for(CollectiveKind kind, int size);
// Returns whether the input or the output holds one block for each rank. The number of elements in such a
// buffer is the count times the number of ranks.
bool has_blocks(CollectiveKind kind);

}  // namespace tutti::test
