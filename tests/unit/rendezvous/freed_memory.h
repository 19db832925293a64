#pragma once

#include <cstddef>
#include <span>

namespace tutti::test {

// Makes this program look for `secret` in all memory that is passed to `operator delete`. It can
// look for at most five secrets.
void look_for(std::span<const std::byte> secret);
// Returns how many times the program has found a secret since this function was last called.
std::size_t found_in_freed_memory();

}  // namespace tutti::test
