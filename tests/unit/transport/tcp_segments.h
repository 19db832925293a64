#pragma once

#include <cstdint>

namespace tutti::tcp {

// How many segments with data a connection has sent. In a file of its own, since the kernel's header, which
// alone has that figure, does not go together with the library's.
std::uint32_t segments_sent(int descriptor);

}  // namespace tutti::tcp
