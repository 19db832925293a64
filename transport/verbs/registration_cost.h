#pragma once

#include <cstddef>

#include "transport/verbs/domain.h"

namespace tutti::verbs {

// Measures, within a few milliseconds, from how many bytes on it takes less time to register memory with a
// device, and to deregister it, than to copy it. The result is the largest possible number if registering
// never pays, or fails.
std::size_t measure_registration(const SharedDomain& domain);

}  // namespace tutti::verbs
