#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>

#include <tutti/deadline.h>

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
  // The agent, or what carries its stderr, has written a line after `came_up`.
  virtual void on_line(const std::string& line) = 0;

 protected:
  ~StarterEvents() = default;
};

// What a starter needs to know.
struct StarterTask {
  std::string host;
  std::vector<std::string> command;       // to run here
  std::string tool;                       // "ssh", for messages
  std::string agent_path;                 // of tutti on the host, for messages
  bool tries_again = true;                // false for an agent on this machine
  Deadline deadline;
};

// A `Starter` runs the command that starts a host's agent, reads the agent's secret from the command's stdout,
// and runs it again if it fails in a way that may pass, such as a host that is not up yet. Only the thread
// that runs `io` may use it.
class Starter final {
 public:
  Starter(asio::io_context& io, StarterTask task, StarterEvents& events);
  // Kills the command if it still runs.
  ~Starter();

  void start();
  // The agent has called back. From now on the command is not run again, and what it writes on stderr is
  // reported line by line.
  void came_up();
  // Ends the command: it is killed unless it ends by itself within two seconds.
  void stop();
  // Returns whether a command runs.
  bool runs() const;
  // Says, for the user, what is being awaited: "ssh is running", or the last failure and how often the
  // command was tried.
  std::string state() const;

 private:
  // Private members follow from the implementation.
};

}  // namespace tutti::tools
