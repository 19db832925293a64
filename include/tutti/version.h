#pragma once

#include <string_view>

#include <tutti/export.h>

namespace tutti {

// "0.1.0"
TUTTI_API std::string_view version();
// Tells this library's sources from any others, in a few digits: builds of one version may differ in what
// they say to each other, down to the layout of memory that they share, so `init` compares this, too.
TUTTI_API std::string_view build();

}  // namespace tutti
