#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// `error_text` returns the system's text for an errno value. If descriptors have run out, it adds whether the
// process or the host has none left, and which limit the user can raise.
std::string error_text(int error);

// Returns how many times so far `error_text` has said that this process has no descriptors left. If the
// number grew during a call that failed, a lack of descriptors may be the cause.
std::uint64_t descriptor_shortages();

}  // namespace tutti
