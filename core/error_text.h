#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// `error_text` returns the system's text for an errno. If descriptors have run out, it adds which limit was
// reached, since the user can raise it.
std::string error_text(int error);

// Returns how often a text has said that this process has no descriptors left. A thread that waits in vain
// can use it to name the cause.
std::uint64_t descriptor_shortages();

}  // namespace tutti
