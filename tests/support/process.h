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

// A program run as a user would run it. It starts in a process group of its own; whatever is left of that
// group is killed when this goes away, and the program itself dies with the test.
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
  // Its exit status, 128 + n if signal n ended it; nothing if it still runs after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit = ample);
  // Signals only the program, not its children. Has no effect if it has ended.
  void signal(int number);

  // Its output so far.
  std::string out() const;
  std::string err() const;
  // Waits until it has written `text` to stdout; false if it ended, or `limit` passed, without.
  bool wait_for_output(std::string_view text, std::chrono::milliseconds limit = ample);
  // Everything that a failed assertion should show: command, status and both outputs.
  std::string report() const;

 private:
  bool poll();

  std::string command_;
  pid_t pid_ = -1;
  int out_ = -1;  // anonymous files: no pipe to fill up, no thread to empty it
  int err_ = -1;
  std::optional<int> status_;
};

// `strings` as exec takes them: with a null pointer at the end. They must live as long as that is used.
std::vector<char*> pointers(std::vector<std::string>& strings);

// All that was written to a file, from its beginning, wherever the descriptor stands.
std::string contents(int file);

// A TCP port of the loopback interface that is free at the moment, chosen at random below those that the
// kernel hands out by itself: other tests running meanwhile hardly ever take it.
std::uint16_t unused_port();

}  // namespace tutti::test
