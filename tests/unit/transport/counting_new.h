#pragma once

#include <cstddef>

namespace tutti {

// Returns how often this program has called `operator new`.
std::size_t allocations();

}  // namespace tutti
