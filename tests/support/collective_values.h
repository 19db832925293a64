#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/support/collective_case.h"

namespace tutti::test {

// Computes a case's elements, as bytes of its type. It computes many at once: one by one they would take a
// sanitizer's run longer than the collectives do. Blocks of an input are numbered through.

// Elements [first, first + count) of `rank`'s input.
void fill_input(const CollectiveCase& test, std::byte* to, int rank, std::uint64_t first, std::uint64_t count,
                int size);

// Elements [first, first + count) of the inputs of ranks [0, end), reduced.
void fill_reduced(const CollectiveCase& test, std::byte* to, std::uint64_t first, std::uint64_t count,
                  int end, int size);

}  // namespace tutti::test
