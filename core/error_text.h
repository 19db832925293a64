#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// `error_text` is what the system says of an error of a call (errno); where descriptors have run out, also
// whose and by what limit, since the reader can do something about it.
std::string error_text(int error);

// How often that was said of this process's descriptors: where one is missing, others only wait.
std::uint64_t descriptor_shortages();

}  // namespace tutti
