#pragma once

#include <cstdint>

namespace tutti::tcp {

// Returns how many segments with data a connection has sent. Only the kernel's header declares this counter.
// That header conflicts with the C library's header, so this function has its own source file.
std::uint32_t segments_sent(int descriptor);

}  // namespace tutti::tcp
