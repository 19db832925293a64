#pragma once

#include <memory>

#include "transport/offload/offload.h"
#include "transport/staged/options.h"

namespace tutti::staged {

// Makes the staged offload of a rank. Fails with `unsupported` if there is no CUDA driver. `create` does not
// test whether the driver works and finds a device. Opening a session tests that.
Result<std::unique_ptr<Offload>> create(const Options& options);

}  // namespace tutti::staged
