#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <sys/types.h>
#include <sys/wait.h>

#include "tools/run/start_failure.h"

namespace tutti::tools {

enum class Stream { out, err };

// `ExitStatus` says how a process ended.
struct ExitStatus {
  int code = 0;
  int signal = 0;  // 0 if no signal ended the process; `code` is then its exit code

  static ExitStatus of_wait_status(int status) {
    if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
    return {.code = WEXITSTATUS(status)};
  }
  bool success() const { return code == 0 && signal == 0; }
};

// A `RankExit` says that a rank has ended.
struct RankExit {
  int rank = 0;
  pid_t pid = 0;
  ExitStatus status;
  // This is the time by the clock of this process's host. The rank may have run on another host.
  std::chrono::steady_clock::time_point when;
};

// `AgentEvents` is the interface through which an agent reports to its job.
class AgentEvents {
 public:
  virtual void on_output(int rank, Stream stream, std::string_view bytes) = 0;
  // Called when a rank has ended and all of its output has been delivered. The order of the calls
  // is the order in which ranks end.
  virtual void on_exit(const RankExit& exit) = 0;
  // Called when a rank cannot be started.
  virtual void on_start_failure(const StartFailure& failure) = 0;
  // Called when all ranks and all of their descendants have ended.
  virtual void on_done() = 0;

 protected:
  ~AgentEvents() = default;
};

}  // namespace tutti::tools
