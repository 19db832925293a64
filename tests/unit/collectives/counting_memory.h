#pragma once

#include <cstddef>

namespace tutti::test {

// Returns how often this program has allocated memory so far. It counts calls of `operator new`,
// and calls of malloc and similar functions from code that is linked with `--wrap`. CMakeLists.txt
// links all of our code this way.
std::size_t allocations();

}  // namespace tutti::test
