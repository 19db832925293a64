#pragma once

#include <cstdint>

namespace tutti::tcp {

// Returns how many segments with data a connection has sent. Only the kernel's header has this figure. It
// conflicts with the C library's header, so this is a separate file.
std::uint32_t segments_sent(int descriptor);

}  // namespace tutti::tcp
