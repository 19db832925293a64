#pragma once

#include <cstddef>

namespace tutti::test {

// Returns how often this program has allocated memory so far: by `operator new`, or by malloc and its
// relatives from code that is linked with wrap_memory (CMakeLists.txt), which is all of ours.
std::size_t allocations();

}  // namespace tutti::test
