#pragma once

#include <memory>

#include <tutti/status.h>

#include "transport/mpi/options.h"
#include "transport/transport.h"

// The MPI transport connects the ranks of one MPI world by messages of MPI. So it reaches networks that only
// MPI has a driver for. `create` makes it.
namespace tutti::mpi {

// Fails if the messenger cannot be used, or has no tag left.
Result<std::unique_ptr<tutti::Transport>> create(const Options& options);

}  // namespace tutti::mpi
