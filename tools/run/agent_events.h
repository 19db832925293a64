#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>
#include <sys/wait.h>

namespace tutti::tools {

enum class Stream { out, err };

// `ExitStatus` says how a process ended.
struct ExitStatus {
  int code = 0;
  int signal = 0;  // 0: it ended by itself, with `code`

  explicit ExitStatus(int wait_status)
      : code(WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0),
        signal(WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0) {}
  bool success() const { return code == 0 && signal == 0; }
};

// `AgentEvents` are what an agent tells the runner of the job: here the same process, on other hosts the
// other end of a connection.
class AgentEvents {
 public:
  virtual void on_output(int rank, Stream stream, std::string_view bytes) = 0;
  // A rank has ended, and all of its output has been delivered. Called in the order in which ranks end.
  virtual void on_exit(int rank, pid_t pid, ExitStatus status) = 0;
  // Neither ranks nor any descendants of them are left.
  virtual void on_done() = 0;

 protected:
  ~AgentEvents() = default;
};

}  // namespace tutti::tools
