#pragma once

#include "tools/run/options.h"

namespace tutti::tools::doctor {

struct ReportOptions {
  bool all_pairs = false;  // print each pair, even if there are many
};

// Examines the hosts that the options or a launcher's variables name. It examines this machine if
// there are no such hosts. It prints the findings, and returns the exit status. Call this while the
// process has one thread.
int examine(const RunOptions& options, const ReportOptions& report);

}  // namespace tutti::tools::doctor
