#pragma once

#include <vector>

#include "tests/prove/schedule_checker.h"

// The cases that the proofs of algorithms go through.
namespace tutti::test {

// What an operation may ask for besides its kind.
struct Variant {
  bool commutative = true;
  bool average = false;
  bool premultiplied = false;
  void apply(Problem& problem) const;
};

// All that the algorithm can do.
std::vector<Variant> variants_for(const Algorithm& algorithm);
// The first, the last, one in the middle; 0 for kinds without a root.
std::vector<int> roots_for(CollectiveKind kind, int size);
// Returns whether one side holds a block of every rank, so that counts multiply with p.
bool has_blocks(CollectiveKind kind);

}  // namespace tutti::test
