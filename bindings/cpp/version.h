#pragma once

#include <string_view>

#include <tutti/core/export.h>

namespace tutti {

// "0.1.0"
TUTTI_API std::string_view version();

}  // namespace tutti
