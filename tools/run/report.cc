#include "tools/run/report.h"

#include <cstring>
#include <string_view>

#include <signal.h>

#include "core/shown.h"
#include "tools/command_line.h"

namespace tutti::tools {

std::string describe(ExitStatus status) {
  if (status.signal == 0) return "exited with status " + std::to_string(status.code);
  const char* limit =
      status.signal == SIGXFSZ ? ": a file, or memory that it shared, beyond RLIMIT_FSIZE, ulimit -f" : "";
  return "was ended by signal " + std::to_string(status.signal) + " (" + strsignal(status.signal) + limit +
         ")";
}

namespace {

// Returns the name of the shared library that the loader did not find, if its last line says so.
std::string missing_library(const std::vector<std::string>& last_lines) {
  constexpr std::string_view complaint = "error while loading shared libraries: ";
  if (last_lines.empty()) return {};
  const std::string_view line = last_lines.back();
  const std::size_t begin = line.find(complaint);
  if (begin == line.npos) return {};
  const std::string_view rest = line.substr(begin + complaint.size());
  return printable(std::string(rest.substr(0, rest.find(':'))));
}

std::string hint_at_library(const RankFailure& failure) {
  const std::string library = missing_library(failure.last_lines);
  if (!failure.by_agent || failure.status.code != exit_not_found || library.empty()) return {};
  return ": " + failure.host + " has no " + library + "; -x LD_LIBRARY_PATH passes on where it is found here";
}

}  // namespace

std::string failure_report(const RankFailure& failure) {
  const std::string rank = "rank " + std::to_string(failure.rank);
  std::string text = "tutti run: " + rank + " (host " + failure.host + ", pid " +
                     std::to_string(failure.pid) + ") " + describe(failure.status) + hint_at_library(failure);
  const bool silent = failure.last_lines.empty();
  if (silent) text += " and wrote nothing to " + failure.stream;
  if (!failure.others.empty()) text += "; " + failure.others;
  text += silent ? "\n" : ". Its last lines on " + failure.stream + ":\n";
  for (const std::string& line : failure.last_lines) text += "  " + rank + "| " + line + "\n";
  return text;
}

std::string lost_report(const LostHost& lost) {
  std::string text = "tutti run: host " + lost.host + " is lost: " + lost.why;
  if (!lost.ranks.empty()) text += lost.ranks.size() == 1 ? "; it had rank" : "; it had ranks";
  for (const int rank : lost.ranks) text += " " + std::to_string(rank);
  if (!lost.others.empty()) text += "; " + lost.others;
  return text + "\n";
}

}  // namespace tutti::tools
