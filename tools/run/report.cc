#include "tools/run/report.h"

#include <cstring>

#include <signal.h>

namespace tutti::tools {

std::string describe(ExitStatus status) {
  if (status.signal == 0) return "exited with status " + std::to_string(status.code);
  const char* limit =
      status.signal == SIGXFSZ ? ": a file, or memory that it shared, beyond RLIMIT_FSIZE, ulimit -f" : "";
  return "was ended by signal " + std::to_string(status.signal) + " (" + strsignal(status.signal) + limit +
         ")";
}

std::string failure_report(const RankFailure& failure) {
  const std::string rank = "rank " + std::to_string(failure.rank);
  std::string text = "tutti run: " + rank + " (host " + failure.host + ", pid " +
                     std::to_string(failure.pid) + ") " + describe(failure.status);
  const bool silent = failure.last_lines.empty();
  if (silent) text += " and wrote nothing to " + failure.stream;
  if (!failure.others.empty()) text += "; " + failure.others;
  text += silent ? "\n" : ". Its last lines on " + failure.stream + ":\n";
  for (const std::string& line : failure.last_lines) text += "  " + rank + "| " + line + "\n";
  return text;
}

}  // namespace tutti::tools
