#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// `error_text` is the system's text for an error of a call (errno). If descriptors have run out, it adds
// whether the process or the host has none left, and the limit, which the user can raise.
std::string error_text(int error);

// Returns how often a text has said that this process has no descriptors left. It helps to find the cause
// when other threads only notice a timeout.
std::uint64_t descriptor_shortages();

}  // namespace tutti
