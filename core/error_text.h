#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// `error_text` returns the system's text for an errno value. If descriptors have run out, it adds whether the
// process or the host has none left, and which limit the user can raise.
std::string error_text(int error);

// Returns how many times so far `error_text` has said that this process has no descriptors left. The number
// helps to find the cause when other threads only notice a timeout.
std::uint64_t descriptor_shortages();

}  // namespace tutti
