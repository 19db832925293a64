#pragma once

#include <cstdint>
#include <string_view>

#include <tutti/status.h>

namespace tutti {

// Makes a `Status` from a failure that another process has put into a store. The text is cut to a readable
// length. A code that does not stand for a failure becomes `internal`.
Status told_failure(std::uint32_t code, std::string_view message, int peer = -1);

}  // namespace tutti
