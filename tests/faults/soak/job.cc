#include "tests/faults/soak/job.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string_view>
#include <thread>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/process.h"

extern char** environ;

namespace tutti::soak {

namespace {

constexpr std::chrono::milliseconds between_looks{2};
constexpr int patience = 150'000;  // five minutes, counted as a number of checks of the ranks

// Returns the environment variables of a rank. The rank's time limits are very long. So even on a
// slow machine, only deadlines of the plan can expire.
std::vector<std::string> environment(const Episode& episode, int rank, const std::string& store) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("TUTTI_")) variables.emplace_back(*entry);
  }
  for (const auto& [name, value] : episode.variables) variables.push_back(name + "=" + value);
  variables.push_back("TUTTI_RANK=" + std::to_string(rank));
  variables.push_back("TUTTI_WORLD_SIZE=" + std::to_string(episode.size));
  variables.push_back("TUTTI_INIT_METHOD=" + store);
  variables.push_back("TUTTI_TIMEOUT=1h");
  variables.push_back("TUTTI_INIT_TIMEOUT=1h");
  return variables;
}

}  // namespace

Job::Job(std::uint64_t seed, const Episode& episode)
    : episode_(episode), ranks_(static_cast<std::size_t>(episode.size)) {
  const std::string store = "tcp://127.0.0.1:" + std::to_string(test::unused_port());
  for (int rank = 0; rank < episode.size; ++rank) {
    start(ranks_[static_cast<std::size_t>(rank)],
          {"/proc/self/exe", "--rank", std::to_string(seed), std::to_string(episode.number)},
          environment(episode, rank, store));
  }
}

Job::~Job() {
  for (Rank& rank : ranks_) {
    if (!rank.ended) {
      kill(rank.pid, SIGKILL);
      waitpid(rank.pid, nullptr, 0);
    }
    close(rank.err);
  }
}

void Job::start(Rank& rank, std::vector<std::string> words, std::vector<std::string> variables) {
  rank.err = memfd_create("stderr", MFD_CLOEXEC);
  const std::vector<char*> argv = test::pointers(words), envp = test::pointers(variables);
  const pid_t parent = getpid();
  rank.pid = fork();
  if (rank.pid < 0 || rank.err < 0) throw std::runtime_error("no process can be started");
  if (rank.pid > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  dup2(rank.err, STDERR_FILENO);
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

bool Job::dies(int number) const {
  return std::ranges::any_of(episode_.rounds, [&](const Round& round) {
    const bool second = round.fault.kind == Fault::Kind::pair && round.fault.second == number;
    return round.fault.kills() && (round.fault.rank == number || second);
  });
}

// Returns how long a stopped rank stays stopped, as a number of checks. Every stop of a rank lasts
// as long as the longest planned stop of that rank.
int Job::pause_of(int number) const {
  int longest = 0;
  for (const Round& round : episode_.rounds) {
    if (round.fault.kind == Fault::Kind::stop && round.fault.rank == number)
      longest = std::max(longest, round.fault.milliseconds);
  }
  return longest / static_cast<int>(between_looks.count());
}

// Returns whether the rank has ended. Resumes a rank that has been stopped for long enough.
bool Job::look(Rank& rank) {
  if (rank.ended) return true;
  int status = 0;
  if (waitpid(rank.pid, &status, WNOHANG | WUNTRACED) == rank.pid) {
    if (WIFSTOPPED(status)) {
      rank.stopped_for = 1;
    } else {
      rank.ended = status;
    }
  }
  if (rank.stopped_for > 0 && ++rank.stopped_for > pause_of(static_cast<int>(&rank - ranks_.data()))) {
    rank.stopped_for = 0;
    kill(rank.pid, SIGCONT);
  }
  return rank.ended.has_value();
}

std::string Job::judge(int number) const {
  const Rank& rank = ranks_[static_cast<std::size_t>(number)];
  const std::string who = "rank " + std::to_string(number);
  if (!rank.ended) return who + " has not ended\n";
  const int status = *rank.ended;
  const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (good || (killed && dies(number))) return {};
  return who + " has ended with " +
         (WIFEXITED(status) ? std::to_string(WEXITSTATUS(status))
                            : "signal " + std::to_string(WTERMSIG(status))) +
         "\n";
}

std::string Job::report() const {
  std::string text;
  for (const Rank& rank : ranks_) {
    text += "--- rank " + std::to_string(&rank - ranks_.data()) + ", pid " + std::to_string(rank.pid) + "\n" +
            test::contents(rank.err);
  }
  return text;
}

std::string Job::watch() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point last = Clock::now();
  bool over = false, failed = false;
  for (int looks = 0; looks < patience && !over && !failed; ++looks) {
    over = true;
    for (Rank& rank : ranks_) {
      over = look(rank) && over;
      failed |= rank.ended && !judge(static_cast<int>(&rank - ranks_.data())).empty();
    }
    if (!over) std::this_thread::sleep_for(between_looks);
    const Clock::time_point now = Clock::now();
    longest_gap_ = std::max(longest_gap_, std::chrono::duration<double>(now - last).count());
    last = now;
  }
  // This loop gives the other ranks a second to report the failure, too.
  for (int looks = 0; failed && looks < 500; ++looks) {
    for (Rank& rank : ranks_) look(rank);
    std::this_thread::sleep_for(between_looks);
  }
  std::string problems;
  for (int rank = 0; rank < episode_.size; ++rank) problems += judge(rank);
  return problems.empty() ? "" : problems + report();
}

}  // namespace tutti::soak
