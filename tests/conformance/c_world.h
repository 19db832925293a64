#pragma once

#include <cstdint>
#include <functional>

#include <tutti/c.h>
#include <tutti/store.h>

namespace tutti::test {

// Returns a C store on top of a C++ store. Each function behaves as the C header says.
tutti_store c_store(Store& store);

// Calls `body` with each rank's communicator, on a separate thread for each rank.
void c_world(int size, const std::function<void(tutti_comm*)>& body,
             std::int64_t timeout_ns = 60'000'000'000);

}  // namespace tutti::test
