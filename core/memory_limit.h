#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// How much memory this process and its like may ever have: the machine's with its swap, or what the control
// groups (v1 or v2) that it is in are limited to. Asking the kernel for more does not fail: it ends the
// process once that is used. `root`: where the system's files are found.
std::uint64_t memory_limit(const std::string& root = "");

}  // namespace tutti
