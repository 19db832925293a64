#pragma once

#include <cstdint>
#include <string_view>

#include <tutti/status.h>

namespace tutti {

// Returns a failure that another process described, as read from a store. The text is cut to a readable
// length. A code that is not that of a failure becomes `internal`.
Status told_failure(std::uint32_t code, std::string_view message, int peer = -1);

}  // namespace tutti
