#pragma once

#include "tools/run/options.h"

namespace tutti::tools {

// Runs the job to its end and returns its exit status. Call this while the process has one thread.
int launch(const RunOptions& options);

}  // namespace tutti::tools
