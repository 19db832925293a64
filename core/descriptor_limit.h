#pragma once

#include <cstdint>

namespace tutti {

// `spare_descriptors` is how many more file descriptors this process may open, an eighth of its limit
// (RLIMIT_NOFILE) aside, which is left for what cannot do without. What is not known is not limited.
std::uint64_t spare_descriptors();

}  // namespace tutti
