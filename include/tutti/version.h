#pragma once

#include <string_view>

#include <tutti/export.h>

namespace tutti {

// "0.1.0"
TUTTI_API std::string_view version();
// Returns a short fingerprint of this library's sources. Builds of one version may differ in their messages
// and in the layout of memory that they share, so `init` compares this, too.
TUTTI_API std::string_view build();

}  // namespace tutti
