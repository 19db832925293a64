#pragma once

#include <cstddef>
#include <span>

namespace tutti::test {

// Makes this program look for these bytes in all memory passed to `operator delete`. It can look for at
// most four secrets.
void look_for(std::span<const std::byte> secret);
// Returns how often it has found one of them since the last call.
std::size_t found_in_freed_memory();

}  // namespace tutti::test
