#pragma once

#include <string>
#include <vector>

#include <tutti/status.h>

#include "rendezvous/launch/environment.h"
#include "tools/run/host_plan.h"
#include "tools/run/options.h"

namespace tutti::tools {

// Returns the text that `tutti run --dry-run` prints. For each host, it shows the command that
// starts the agent, and the program that the agent would run. `environment` is the launcher's
// environment after the -x options. `PORT` and `JOB` stand for values that differ in each run, and
// secrets are masked.
Result<std::string> dry_run_report(const RunOptions& options, const HostPlan& plan,
                                   const Environment& environment);

// Prints the report. Returns the exit status.
int dry_run(const RunOptions& options);

}  // namespace tutti::tools
