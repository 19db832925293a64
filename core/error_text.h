#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// `error_text` is the system's text for an error of a call (errno). Where descriptors have run out it adds
// whose, and the limit, since the reader can do something about it.
std::string error_text(int error);

// How often a text has said that this process has no descriptors left. It tells the cause where other threads
// only wait in vain.
std::uint64_t descriptor_shortages();

}  // namespace tutti
