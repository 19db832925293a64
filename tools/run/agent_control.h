#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <signal.h>

#include "rendezvous/launch/environment.h"
#include "tools/run/binding.h"

namespace tutti::tools {

struct AgentTask;

// `AgentControl` is the interface through which a job starts and ends its ranks, on this host or on
// other hosts. The job's `AgentEvents` receive the reports about the ranks. The functions do not
// block.
class AgentControl {
 public:
  virtual ~AgentControl() = default;

  // Starts the ranks. Calls `on_start_failure` if a rank cannot be started, perhaps before this
  // function returns. Other ranks may be running at that time, and `stop` ends them.
  virtual void start(const AgentTask& task) = 0;
  // Sends a signal to every rank and its process group.
  virtual void signal(int number) = 0;
  // Ends all processes: sends them the signal `number` at once, and SIGKILL after the task's
  // `kill_grace`. `on_done` is called after all of them have ended.
  virtual void stop(int number = SIGTERM) = 0;
  virtual void kill() = 0;
  // The ranks' output stays in their pipes while reading is off, and a rank blocks when its pipe is
  // full.
  virtual void set_reading(bool reading) = 0;
  // Returns the name of the rank's host, for messages.
  virtual std::string host_of(int rank) const = 0;
};

// An `AgentTask` is a job, or the part of it that runs on one host.
struct AgentTask {
  std::vector<std::string> program;
  // The variables of the job; the agent adds those that differ between ranks.
  Environment environment;
  std::vector<int> ranks;  // in ascending order; a rank's local rank is its position here
  int world_size = 1;
  int input = -1;  // the descriptor of rank 0's stdin; the other ranks read nothing
  bool merge_stderr = false;
  Binding binding = Binding::none;
  bool mpi_variables = false;  // the ranks also get the variables that programs for Open MPI read
  std::chrono::nanoseconds kill_grace{0};
};

}  // namespace tutti::tools
