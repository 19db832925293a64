#pragma once

#include <cstdint>

namespace tutti::tcp {

// Returns how many segments with data a connection has sent. Only the kernel's header has this figure. That
// header conflicts with the C library's, so this function has a file of its own.
std::uint32_t segments_sent(int descriptor);

}  // namespace tutti::tcp
