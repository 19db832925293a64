#pragma once

#include "tools/run/options.h"

namespace tutti::tools::doctor {

struct ReportOptions {
  bool all_pairs = false;  // print each pair, however many there are
};

// Examines the hosts that the options or the variables of a launcher give, or this machine if they give none.
// Prints what was found, and returns the exit status. Call this while the process has one thread.
int examine(const RunOptions& options, const ReportOptions& report);

}  // namespace tutti::tools::doctor
