#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <sys/types.h>

#include <tutti/deadline.h>

#include "rendezvous/launch/environment.h"
#include "tools/run/agent_events.h"
#include "tools/run/spawn.h"
#include "tools/run/start_command.h"

namespace tutti::tools {

// `StarterEvents` is the interface through which a starter reports.
class StarterEvents {
 public:
  // Called when the agent has printed its secret, 64 hexadecimal digits. The secret of a later try
  // replaces the earlier one.
  virtual void on_secret(std::string_view secret) = 0;
  // Called when it is certain that no agent will start. `text` says why, and may contain the last
  // lines of the command. This function is called at most once, and never after `stop`.
  virtual void on_failure(const std::string& text) = 0;
  // Called for each line that the agent or its start command writes to stderr after `came_up`. The
  // line is printable.
  virtual void on_line(const std::string& line) = 0;

 protected:
  ~StarterEvents() = default;
};

// A `StarterTask` describes the command of a starter.
struct StarterTask {
  std::string host;
  std::vector<std::string> command;  // the command to run on this machine
  // The name of the command's program, for messages. The name also matters for failures, since "ssh" exits
  // with 255 for its own errors.
  std::string tool;
  std::string agent_path;   // the path of tutti on the host, for messages
  bool tries_again = true;  // false for an agent on this machine
  Deadline deadline;
  SpawnDefaults defaults = SpawnDefaults::of_this_process();  // the defaults of the command
  Environment environment = environment_of_process();         // the environment of the command
};

// A `Starter` runs the command that starts a host's agent, and reads the agent's secret from the
// command's stdout. It runs the command again after a temporary failure, such as a host that has
// not booted yet. Only the thread that runs `io` may use it, and that thread must live as long as
// the command.
class Starter final {
 public:
  Starter(asio::io_context& io, StarterTask task, StarterEvents& events);
  // Kills the command if it still runs.
  ~Starter();
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  // Runs the command. May call `on_failure` before it returns.
  void start();
  // Call this when the agent has called back. The command is not run again after that, and its
  // stderr is reported line by line.
  void came_up();
  // Ends the command. The command gets SIGTERM at once if the agent has not called back. It is killed
  // if it does not end within two seconds.
  void stop();
  // Returns whether a command runs.
  bool runs() const { return pid_ > 0; }
  // Returns a text for the user that says why the host is not ready. The text says one of three
  // things: that the command is running, what the last failure was and how many tries there were,
  // or that the agent has not called back.
  std::string state() const;

 private:
  // A `Pipe` carries one of the command's outputs.
  struct Pipe {
    explicit Pipe(asio::io_context& io) : end(io) {}
    asio::posix::stream_descriptor end;
    std::string line;  // an incomplete line
  };

  void run_command();
  // Returns 0 or an errno.
  int spawn_command(const std::string& path);
  void await_exit();
  void await_output(Pipe& pipe);
  bool read_some(Pipe& pipe);
  void take(Pipe& pipe, std::string_view bytes);
  void take_line(Pipe& pipe);
  void say(std::string_view line);
  void drain(Pipe& pipe);
  void ended();
  void judge(ExitStatus status);
  bool may_pass(ExitStatus status) const;
  void try_again(ExitStatus status);
  void give_up_in_time();
  void fail(const std::string& text);
  void signal(int number);
  void close_pipes();

  const StarterTask task_;
  StarterEvents& events_;
  const std::string limit_;  // the time until the deadline, for messages
  Pipe out_;
  Pipe err_;
  asio::posix::stream_descriptor exit_;  // becomes readable when the command ends
  asio::steady_timer deadline_timer_;
  asio::steady_timer pause_timer_;
  asio::steady_timer kill_timer_;
  pid_t pid_ = -1;
  std::chrono::milliseconds pause_;
  int failures_ = 0;
  std::size_t noise_ = 0;                 // bytes that the command has written to stdout before the secret
  std::vector<std::string> said_;         // the last lines of the command
  std::vector<std::string> said_before_;  // the last lines of the previous try
  std::string last_failure_;
  bool has_secret_ = false;
  bool up_ = false;
  bool over_ = false;
  std::shared_ptr<void> alive_;  // tells handlers that run late whether the starter still exists
};

}  // namespace tutti::tools
