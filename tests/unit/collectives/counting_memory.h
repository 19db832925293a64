#pragma once

#include <cstddef>

namespace tutti::test {

// Returns how often this program has allocated memory so far. Allocations count if they are made by `operator
// new`, or by malloc and its relatives in code that is linked with wrap_memory (CMakeLists.txt). All of our
// code is.
std::size_t allocations();

}  // namespace tutti::test
