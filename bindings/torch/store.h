#pragma once

#include <chrono>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tutti/c.h>

namespace tutti_torch {

// Returns the communicator of all ranks that call this with the same c10d store. Each further call
// returns a new communicator. Blocks until all ranks have arrived. Throws if they do not arrive in
// time. The caller must not hold the GIL, since the store may be a Python object.
tutti_comm* meet(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                 std::chrono::milliseconds timeout);

}  // namespace tutti_torch
