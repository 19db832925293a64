#pragma once

#include <cstdint>

namespace tutti {

// `spare_descriptors` is how many more file descriptors this process may open. An eighth of its limit
// (RLIMIT_NOFILE) is kept in reserve. A limit that is not known does not limit anything.
std::uint64_t spare_descriptors();

}  // namespace tutti
