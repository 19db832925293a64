#pragma once

#include <cstdint>

namespace tutti::tcp {

// Returns how many segments with data a connection has sent. This is a separate file, since only the kernel's
// header has that figure and it conflicts with the C library's.
std::uint32_t segments_sent(int descriptor);

}  // namespace tutti::tcp
