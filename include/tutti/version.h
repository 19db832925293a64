#pragma once

#include <string_view>

#include <tutti/export.h>

namespace tutti {

// Returns "0.1.0".
TUTTI_API std::string_view version();
// Returns a short digest of this library's sources. Builds of one version may differ in their protocol and in
// the layout of shared memory, so `init` compares the digests of all ranks.
TUTTI_API std::string_view build();

}  // namespace tutti
