#pragma once

#include <cstdint>
#include <string_view>

#include <tutti/status.h>

namespace tutti {

// `told_failure` is a failure that another process described, read from a store: the text is cut to a
// readable length, and a code that is not a failure's becomes `internal`.
Status told_failure(std::uint32_t code, std::string_view message, int peer = -1);

}  // namespace tutti
