#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "core/descriptor.h"
#include "tools/run/agent_control.h"
#include "tools/run/agent_events.h"
#include "tools/run/spawn.h"

namespace tutti::tools {

// `Agent` starts the local ranks, reads their output, notices their exit, and ends all of their processes. It
// does not handle terminals, files or other hosts. Its handlers run on `io`, and only the thread that runs
// `io` may use the agent. Call `adopt_orphans` before making an agent. This process must have no other
// children.
class Agent final : public AgentControl {
 public:
  // The ranks inherit the settings in `defaults`, for example the signal actions.
  Agent(asio::io_context& io, AgentEvents& events,
        const SpawnDefaults& defaults = SpawnDefaults::of_this_process());

  void start(const AgentTask& task) override;
  void signal(int number) override;
  void stop(int number = SIGTERM) override;
  void kill() override;
  void set_reading(bool reading) override;
  std::string host_of(int rank) const override;
  // Returns at once. Later it reports all exits that have happened so far, and then calls `then`.
  void report_exits(std::function<void()> then);

 private:
  struct Local;
  struct Pipe {
    explicit Pipe(asio::io_context& io) : end(io) {}
    Local* owner = nullptr;
    Stream stream = Stream::out;
    asio::posix::stream_descriptor end;
    bool waiting = false;
  };
  struct Local {
    explicit Local(asio::io_context& io) : exit(io), pipes{Pipe(io), Pipe(io)} {}
    int rank = 0;
    pid_t pid = -1;
    bool running = false;
    asio::posix::stream_descriptor exit;  // becomes readable when the process ends
    std::array<Pipe, 2> pipes;
  };

  // Returns 0 or an errno.
  int start_rank(const AgentTask& task, const std::string& path, std::size_t local_rank,
                 const ProcessorSet& processors);
  // `pipes` are our ends of the pipes for stdout and stderr. There is no pipe for stderr if it is
  // merged into stdout.
  void watch(int rank, pid_t pid, std::span<Descriptor, 2> pipes);
  void await_exit(Local& local);
  void await_children();
  void await_output(Pipe& pipe);
  bool read_some(Pipe& pipe);
  void drain(Local& local);
  void ended(Local& local, int wait_status);
  void reap();
  void end_leftovers();
  void finish();
  Local* find(pid_t pid);
  void signal_leftovers(int number);
  std::vector<pid_t> leftovers();

  asio::io_context& io_;
  AgentEvents& events_;
  const SpawnDefaults defaults_;
  asio::signal_set child_signal_;
  asio::steady_timer kill_timer_;
  std::chrono::nanoseconds kill_grace_{0};
  std::vector<std::unique_ptr<Local>> locals_;
  std::set<pid_t> signalled_;  // descendants of ended ranks that were already asked to end
  std::vector<char> buffer_;
  int running_ = 0;
  bool reading_ = true;
  bool stopping_ = false;
  bool killing_ = false;
  bool done_ = false;
};

}  // namespace tutti::tools
