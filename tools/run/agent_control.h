#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <signal.h>

#include "rendezvous/launch/environment.h"
#include "tools/run/binding.h"

namespace tutti::tools {

struct AgentTask;

// `AgentControl` is the interface through which a job starts and ends its ranks, wherever they run. What
// happens to the ranks is reported to the job's `AgentEvents`. The functions do not block.
class AgentControl {
 public:
  virtual ~AgentControl() = default;

  // Starts the ranks. If a rank cannot be started, `on_start_failure` is called, perhaps before this function
  // returns. Other ranks may then be running; `stop` ends those.
  virtual void start(const AgentTask& task) = 0;
  // Sends a signal to every rank and its process group.
  virtual void signal(int number) = 0;
  // Ends all processes: sends them the signal `number` at once, and SIGKILL after the task's `kill_grace`.
  // `on_done` is called once they have ended.
  virtual void stop(int number = SIGTERM) = 0;
  virtual void kill() = 0;
  // While reading is off, the ranks' output stays in their pipes, and a rank blocks when its pipe is full.
  virtual void set_reading(bool reading) = 0;
  // Returns the name of the rank's host, for messages.
  virtual std::string host_of(int rank) const = 0;
};

// An `AgentTask` is a job, or the part of it that runs on one host.
struct AgentTask {
  std::vector<std::string> program;
  Environment environment;  // of the job; the agent adds the variables that differ between ranks
  std::vector<int> ranks;   // in ascending order; a rank's local rank is its position here
  int world_size = 1;
  int input = -1;  // the descriptor of rank 0's stdin; the others read nothing
  bool merge_stderr = false;
  Binding binding = Binding::none;
  bool mpi_variables = false;  // the ranks also get the variables that programs for Open MPI read
  std::chrono::nanoseconds kill_grace{0};
};

}  // namespace tutti::tools
