#pragma once

#include <cstddef>

#include "transport/verbs/domain.h"

namespace tutti::verbs {

// Returns the size, in bytes, from which on it is faster to register memory with a device, and to deregister
// it, than to copy it. Returns the largest possible number if registering never pays, or fails. The
// measurement takes a few milliseconds.
std::size_t measure_registration(const SharedDomain& domain);

}  // namespace tutti::verbs
