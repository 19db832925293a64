#pragma once

#include <cstddef>

namespace tutti {

// How often this program has called `operator new`.
std::size_t allocations();

}  // namespace tutti
