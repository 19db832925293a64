#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace tutti::test {

// This limit is long enough even for a sanitizer on a slow and busy machine.
inline constexpr std::chrono::milliseconds ample = std::chrono::minutes(5);

// A `Process` is a running program, started as a user would start it. It has its own process group.
// The destructor kills the remaining processes of that group, and the program dies with the test.
class Process {
 public:
  // These variables are added to the environment that the program inherits. A variable without a
  // value is removed from that environment.
  using Environment = std::map<std::string, std::optional<std::string>>;

  // `command[0]` is looked up in PATH unless it has a slash. Variables of launchers and of tutti
  // are not inherited, so that a test behaves alike on every machine. `directory` is the folder in
  // which the program runs. An empty text means the folder of the test. Throws std::runtime_error
  // if the program cannot be started.
  explicit Process(const std::vector<std::string>& command, const Environment& environment = {},
                   const std::string& directory = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // Returns the program's exit status, or 128 + n if signal n ended it. Returns nothing if it still
  // runs after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit = ample);
  // Sends a signal to the program only, and not to its children. Has no effect if the program has
  // ended.
  void signal(int number);

  // Returns the program's output on stdout so far.
  std::string out() const;
  std::string err() const;
  // Waits until the program has written `text` to stdout. Returns false if the program ends or
  // `limit` passes first.
  bool wait_for_output(std::string_view text, std::chrono::milliseconds limit = ample);
  // Returns everything that a failed assertion should show: command, status and both outputs.
  std::string report() const;

 private:
  bool poll();

  std::string command_;
  pid_t pid_ = -1;
  int out_ = -1;  // anonymous files: unlike pipes, they cannot fill up, and need no thread to empty them
  int err_ = -1;
  std::optional<int> status_;
};

// Returns `strings` in the form that exec takes, with a null pointer at the end. The strings must outlive the
// result.
std::vector<char*> pointers(std::vector<std::string>& strings);

// Returns the name of the program that a process runs, or an empty text if the process has ended.
std::string program_of(pid_t pid);

// Returns the whole content of a file from its beginning. The position of the descriptor does not
// matter, and stays unchanged.
std::string contents(int file);

// Returns a TCP port of the loopback interface that is free at the moment. The port is a random one
// below the ephemeral ports, so other tests hardly ever take it in the meantime.
std::uint16_t unused_port();

}  // namespace tutti::test
