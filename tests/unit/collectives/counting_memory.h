#pragma once

#include <cstddef>

namespace tutti::test {

// How often this program has asked for memory so far: by `operator new`, or by malloc and its kin from code
// that is linked with wrap_memory (CMakeLists.txt), which is all of ours.
std::size_t allocations();

}  // namespace tutti::test
