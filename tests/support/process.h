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

// A `Process` is a program that runs as a user would run it. It starts in its own process group. The
// destructor kills what is left of that group, and the program dies with the test.
class Process {
 public:
  // These variables are added to the inherited environment. Those without a value are removed from it.
  using Environment = std::map<std::string, std::optional<std::string>>;

  // `command[0]` is looked up in PATH unless it has a slash. Variables of launchers and of tutti are not
  // inherited, so that a test does the same wherever it runs. `directory` is where the program runs; if
  // empty, it runs where the test does. Throws std::runtime_error if nothing can be started.
  explicit Process(const std::vector<std::string>& command, const Environment& environment = {},
                   const std::string& directory = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // Returns the program's exit status, or 128 + n if signal n ended it; nothing if it still runs after
  // `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit = ample);
  // Signals only the program, not its children. Has no effect if the program has ended.
  void signal(int number);

  // Returns what the program has written to stdout so far.
  std::string out() const;
  std::string err() const;
  // Waits until the program has written `text` to stdout. Returns false if the program ends, or `limit`
  // passes, before that.
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

// Returns the whole content of a file, whatever the descriptor's position.
std::string contents(int file);

// Returns a TCP port of the loopback interface that is free at the moment. It is chosen at random below the
// ports that the kernel hands out. So other tests hardly ever take it in the meantime.
std::uint16_t unused_port();

}  // namespace tutti::test
