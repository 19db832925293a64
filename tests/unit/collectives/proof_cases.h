#pragma once

#include <vector>

#include "tests/prove/schedule_checker.h"

// These are the cases that the proofs of algorithms go through.
namespace tutti::test {

// A `Variant` describes the reduction of an operation.
struct Variant {
  bool commutative = true;
  bool average = false;
  bool premultiplied = false;
  void apply(Problem& problem) const;
};

// Returns all variants that the algorithm supports.
std::vector<Variant> variants_for(const Algorithm& algorithm);
// Returns the roots to prove: the first rank, the last rank, and one in the middle. For kinds without a root,
// returns only rank 0.
std::vector<int> roots_for(CollectiveKind kind, int size);
// Returns whether the input or the output holds one block for each rank. Such a buffer has as many elements
// as the count times the number of ranks.
bool has_blocks(CollectiveKind kind);

}  // namespace tutti::test
