#pragma once

#include <cstddef>

#include "transport/verbs/domain.h"

namespace tutti::verbs {

// Returns the smallest size, in bytes, at which registering and deregistering memory with a device is faster
// than copying it. Returns the largest possible number if registering never pays, or fails. The measurement
// takes a few milliseconds.
std::size_t measure_registration(const SharedDomain& domain);

}  // namespace tutti::verbs
