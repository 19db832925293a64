#pragma once

#include <memory>

#include <tutti/status.h>

#include "transport/nccl/options.h"
#include "transport/offload/offload.h"

// NCCL carries out collectives on the memory of CUDA devices; `create` makes the offload.
namespace tutti::nccl {

// Makes one rank's offload. Fails with `unsupported` if a library is missing or too old, if the options
// demand encryption, or if NCCL_COMM_BLOCKING is 1. Does not initialize CUDA.
Result<std::unique_ptr<tutti::Offload>> create(const Options& options);

}  // namespace tutti::nccl
