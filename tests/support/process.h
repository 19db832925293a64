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

// This limit also suffices for a sanitizer on a slow and busy machine.
inline constexpr std::chrono::milliseconds ample = std::chrono::minutes(5);

// A `Process` is a program that runs as a user would run it. It starts in its own process group; the
// destructor kills what is left of that group, and the program itself dies with the test.
class Process {
 public:
  // Set on top of the inherited environment, or removed from it (no value).
  using Environment = std::map<std::string, std::optional<std::string>>;

  // `command[0]` is looked up in PATH unless it has a slash. Variables of launchers and of tutti are not
  // inherited, so that a test means the same wherever it runs. `directory`: where it runs; empty: where the
  // test does. Throws std::runtime_error if nothing can be started.
  explicit Process(const std::vector<std::string>& command, const Environment& environment = {},
                   const std::string& directory = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // Returns its exit status, 128 + n if signal n ended it; nothing if it still runs after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit = ample);
  // Signals only the program, not its children. Has no effect if it has ended.
  void signal(int number);

  // Returns its output so far.
  std::string out() const;
  std::string err() const;
  // Waits until it has written `text` to stdout; returns false if it ended, or `limit` passed, before that.
  bool wait_for_output(std::string_view text, std::chrono::milliseconds limit = ample);
  // Returns everything that a failed assertion should show: command, status and both outputs.
  std::string report() const;

 private:
  bool poll();

  std::string command_;
  pid_t pid_ = -1;
  int out_ = -1;  // anonymous files: no pipe to fill up, no thread to empty it
  int err_ = -1;
  std::optional<int> status_;
};

// Returns `strings` as exec takes them, with a null pointer at the end. The strings must live as long as the
// result is used.
std::vector<char*> pointers(std::vector<std::string>& strings);

// Returns the whole content of a file, wherever the descriptor's position is.
std::string contents(int file);

// A TCP port of the loopback interface that is free at the moment, chosen at random below those that the
// kernel hands out by itself: other tests running meanwhile hardly ever take it.
std::uint16_t unused_port();

}  // namespace tutti::test
