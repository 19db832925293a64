#pragma once

#include <cstdint>

namespace tutti {

// `spare_descriptors` returns how many more file descriptors this process may open. An eighth of its limit
// (RLIMIT_NOFILE) is kept in reserve. If the limit is not known, the result is the largest signed number.
std::uint64_t spare_descriptors();

}  // namespace tutti
