#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>

#include "collectives/record/debug_socket.h"
#include "core/shown.h"
#include "tools/command_line.h"
#include "tools/debug/dump.h"
#include "tools/debug/merge.h"

namespace tutti::tools {

namespace {

constexpr std::chrono::seconds answer_limit{3};
constexpr const char* nobody =
    "no process of this user, on this machine and network, uses tutti; ranks that have not met yet, or that "
    "run with TUTTI_DEBUG=0, do not answer";

std::optional<pid_t> as_pid(const std::string& text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size() || pid <= 0) return std::nullopt;
  return pid;
}

// `Asked` holds the answers of the ranks on this machine. `problems` maps a process id to the
// reason why that process did not answer. If the caller named no process, `problems` leaves out the
// processes of other users.
struct Asked {
  std::vector<DebugAnswer> answers;
  std::map<pid_t, std::string> problems;
};

void ask_rank(const DebugEndpoint& endpoint, const std::vector<pid_t>& wanted, Asked& asked) {
  auto answer = ask(endpoint, answer_limit);
  if (answer.ok()) {
    if (wanted.empty() || std::ranges::count(wanted, answer->pid) > 0) {
      asked.answers.push_back(std::move(answer).take());
    }
  } else if (answer.status().code() != Code::unauthenticated || !wanted.empty()) {
    asked.problems[endpoint.pid] = answer.status().message();
  }
}

// Asks the processes in `wanted`, or all processes if `wanted` is empty.
Asked ask_ranks(const std::vector<pid_t>& wanted) {
  Asked asked;
  std::vector<DebugEndpoint> others;
  for (const DebugEndpoint& endpoint : debug_endpoints()) {
    if (wanted.empty() || std::ranges::count(wanted, endpoint.pid) > 0) {
      ask_rank(endpoint, wanted, asked);
    } else {
      others.push_back(endpoint);
    }
  }
  // An endpoint shows the id that its process has inside its own container. The id that the user
  // sees may differ, and only the process's answer shows it. So all other endpoints are asked, too.
  if (asked.answers.size() + asked.problems.size() < wanted.size()) {
    for (const DebugEndpoint& endpoint : others) ask_rank(endpoint, wanted, asked);
  }
  return asked;
}

Result<RankDump> read_dump(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    return Status(Code::invalid_argument, "is a folder; name the files in it");
  }
  std::ifstream in(file);
  if (!in) return Status(Code::invalid_argument, "cannot be read");
  std::ostringstream text;
  text << in.rdbuf();
  return parse_dump(text.str());
}

int list_ranks() {
  const Asked asked = ask_ranks({});
  std::vector<RankDump> ranks;
  for (const DebugAnswer& answer : asked.answers) {
    auto dump = parse_dump(answer.text);
    if (dump.ok()) ranks.push_back(std::move(dump).take());
  }
  std::ranges::sort(ranks, {},
                    [](const RankDump& dump) { return std::tie(dump.job, dump.size, dump.rank, dump.pid); });
  for (const RankDump& dump : ranks) {
    std::cout << dump.pid << "  rank " << dump.rank << " of " << dump.size
              << (dump.job.empty() ? "" : ", job " + dump.job) << (dump.progress ? "" : ", makes no progress")
              << "\n";
  }
  for (const auto& [pid, problem] : asked.problems) std::cout << pid << "  " << problem << "\n";
  if (asked.answers.empty() && asked.problems.empty()) {
    std::cerr << "tutti debug: " << nobody << "\n";
    return exit_failure;
  }
  return 0;
}

int show_ranks(const std::vector<pid_t>& pids) {
  const Asked asked = ask_ranks(pids);
  int status = 0;
  for (const pid_t pid : pids) {
    bool shown = false;
    for (const DebugAnswer& answer : asked.answers) {
      if (answer.pid != pid) continue;
      std::cout << answer.text;
      shown = true;
    }
    if (shown) continue;
    const auto problem = asked.problems.find(pid);
    std::cerr << "tutti debug: process " << pid << ": "
              << (problem == asked.problems.end() ? "does not use tutti, or not here" : problem->second)
              << "\n";
    status = exit_failure;
  }
  return status;
}

// `Jobs` maps a job's id and size to its dumps.
using Jobs = std::map<std::pair<std::string, int>, std::vector<RankDump>>;

// Adds a dump. Keeps only the latest dump of each rank.
void keep(Jobs& jobs, RankDump dump) {
  std::vector<RankDump>& dumps = jobs[{dump.job, dump.size}];
  const auto same =
      std::ranges::find_if(dumps, [&](const RankDump& other) { return other.rank == dump.rank; });
  if (same == dumps.end()) {
    dumps.push_back(std::move(dump));
  } else if (same->time_us <= dump.time_us) {
    *same = std::move(dump);
  }
}

void complain(const std::string& source, const std::string& problem) {
  std::cerr << "tutti debug: " << printable(source) << ": " << problem << "\n";
}

void keep_answers(Jobs& jobs, const std::vector<pid_t>& pids) {
  const Asked asked = ask_ranks(pids);
  for (const auto& [pid, problem] : asked.problems) {
    if (!pids.empty() && std::ranges::count(pids, pid) == 0) continue;
    complain("process " + std::to_string(pid), problem);
  }
  for (const DebugAnswer& answer : asked.answers) {
    auto dump = parse_dump(answer.text);
    if (dump.ok()) keep(jobs, std::move(dump).take());
  }
}

// Merges the dumps of all sources, and prints the report. A file that is not a dump changes the
// exit status to `exit_failure`, but the other sources are still merged. A process that does not
// answer leaves the exit status unchanged. The report says what a missing answer may mean.
int merge_dumps(const Arguments& sources) {
  Jobs jobs;
  bool complete = true;
  std::vector<pid_t> pids;
  for (const std::string& source : sources) {
    if (const auto pid = as_pid(source)) {
      pids.push_back(*pid);
      continue;
    }
    auto dump = read_dump(source);
    if (dump.ok()) {
      keep(jobs, std::move(dump).take());
    } else {
      complain(source, dump.status().message());
      complete = false;
    }
  }
  if (sources.empty() || !pids.empty()) keep_answers(jobs, pids);
  if (jobs.empty()) {
    std::cerr << "tutti debug: " << (sources.empty() ? nobody : "there is nothing to merge") << "\n";
    return exit_failure;
  }
  for (const auto& [job, dumps] : jobs) {
    const std::string name = job.first.empty() ? "" : job.first + " ";
    if (jobs.size() > 1) std::cout << "job " << name << "of " << job.second << " ranks\n";
    std::cout << merge(dumps);
  }
  return complete ? 0 : exit_failure;
}

}  // namespace

int debug_command(const Arguments& arguments) {
  CLI::App app(
      "Asks running processes for their operations, and shows which rank the others wait for.\n"
      "Without arguments it lists the ranks of this user on this machine; for given processes it prints\n"
      "their last operations, as JSON.",
      "tutti debug");
  bool merging = false;
  Arguments sources;
  app.add_flag("--merge", merging,
               "Merge the dumps of a job's ranks: show the ranks that are behind, and calls that differ");
  app.add_option("PID", sources,
                 "Processes; with --merge also files (TUTTI_DUMP), or none for all ranks of this user\n"
                 "on this machine");
  if (const auto status = parse(app, arguments)) return *status;
  if (merging) return merge_dumps(sources);
  if (sources.empty()) return list_ranks();
  std::vector<pid_t> pids;
  for (const std::string& source : sources) {
    const auto pid = as_pid(source);
    if (!pid) return usage_error(app, "`" + source + "` is not a process; files are for --merge");
    pids.push_back(*pid);
  }
  return show_ranks(pids);
}

}  // namespace tutti::tools
