#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/support/collective_case.h"

namespace tutti::test {

// These functions compute a case's elements as bytes of its type. They compute many elements at
// once. Under a sanitizer, computing them one by one would take longer than the collectives
// themselves. Elements are numbered consecutively across the blocks of an input.

// Writes elements [first, first + count) of `rank`'s input.
void fill_input(const CollectiveCase& test, std::byte* to, int rank, std::uint64_t first, std::uint64_t count,
                int size);

// Writes elements [first, first + count) of the reduction over the inputs of ranks [0, end).
void fill_reduced(const CollectiveCase& test, std::byte* to, std::uint64_t first, std::uint64_t count,
                  int end, int size);

}  // namespace tutti::test
