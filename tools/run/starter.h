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
  // The agent has printed its secret, 64 hexadecimal digits. The secret of a later try replaces an earlier
  // one.
  virtual void on_secret(std::string_view secret) = 0;
  // There is no hope that an agent starts: `text` says why, with the last words of the command. Called at
  // most once, and not after `stop`.
  virtual void on_failure(const std::string& text) = 0;
  // The agent, or what carries its stderr, has written a line after `came_up`. The line is printable.
  virtual void on_line(const std::string& line) = 0;

 protected:
  ~StarterEvents() = default;
};

// What a starter needs to know.
struct StarterTask {
  std::string host;
  std::vector<std::string> command;  // to run here
  std::string tool;                  // "ssh", which exits with 255 if it has failed itself; also for messages
  std::string agent_path;            // of tutti on the host, for messages
  bool tries_again = true;           // false for an agent on this machine
  Deadline deadline;
  SpawnDefaults defaults = SpawnDefaults::of_this_process();  // for the command
  Environment environment = environment_of_process();         // of the command
};

// A `Starter` runs the command that starts a host's agent, reads the agent's secret from the command's
// stdout, and runs it again if it fails in a way that may pass, such as a host that is not up yet. Only the
// thread that runs `io` may use it, and that thread must live as long as the command.
class Starter final {
 public:
  Starter(asio::io_context& io, StarterTask task, StarterEvents& events);
  // Kills the command if it still runs.
  ~Starter();
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  // Runs the command. May call `on_failure` before it returns.
  void start();
  // The agent has called back. From now on the command is not run again, and what it writes on stderr is
  // reported line by line.
  void came_up();
  // Ends the command: it is killed unless it ends by itself within two seconds. If the agent has not called
  // back, the command gets SIGTERM at once.
  void stop();
  // Returns whether a command runs.
  bool runs() const { return pid_ > 0; }
  // Says, for the user, what is being awaited: "ssh is running", or the last failure and how often the
  // command was tried, or that the agent has not called back.
  std::string state() const;

 private:
  // One of the command's outputs.
  struct Pipe {
    explicit Pipe(asio::io_context& io) : end(io) {}
    asio::posix::stream_descriptor end;
    std::string line;  // the beginning of a line that has not ended yet
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
  asio::posix::stream_descriptor exit_;  // readable once the command has ended
  asio::steady_timer deadline_timer_;
  asio::steady_timer pause_timer_;
  asio::steady_timer kill_timer_;
  pid_t pid_ = -1;
  std::chrono::milliseconds pause_;
  int failures_ = 0;
  std::size_t noise_ = 0;                 // bytes that the command has written to stdout before the secret
  std::vector<std::string> said_;         // the last lines of the command
  std::vector<std::string> said_before_;  // the same of the try before it
  std::string last_failure_;
  bool has_secret_ = false;
  bool up_ = false;
  bool over_ = false;
  std::shared_ptr<void> alive_;  // tells handlers that were already due whether the starter still exists
};

}  // namespace tutti::tools
