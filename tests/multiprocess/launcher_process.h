#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

// This file starts real processes for the tests of the `tutti` command.
namespace tutti::launcher_test {

using Words = std::vector<std::string>;

struct Ended {
  int status = -1;  // as in a shell: 128+n for signal n
  std::string out;
  std::string err;
};

// A `Command` is `tutti` with some arguments, in the background and in its own process group. All
// of its descendants have a mark in their environment, by which `marked` finds them. The destructor
// kills the remaining descendants.
class Command {
 public:
  // The command inherits this process's environment without the variables of launchers. It also
  // gets `variables` ("NAME=VALUE").
  explicit Command(const Words& arguments, const std::string& input = "", const Words& variables = {});
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Waits until stdout contains `text` at `times` places. Returns false if five minutes pass or the command
  // ends first.
  bool wait_for_output(const std::string& text, int times = 1);
  // Waits for the command to end. If it does not end within five minutes, the test fails and the status is
  // -1.
  Ended wait();
  // Returns all running processes that carry the mark, including the command itself.
  std::vector<pid_t> marked() const;
  // Waits until no marked process is left. Returns false if there still are marked processes after two
  // minutes.
  bool wait_until_gone() const;

 private:
  void read_output(int timeout_ms);

  std::string mark_;
  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  int in_ = -1;
  std::string input_;
  Ended result_;
};

// Runs `tutti` and waits for its end. Fails the test if a process is left behind.
Ended tutti(const Words& arguments, const std::string& input = "", const Words& variables = {});

// Runs `tutti run OPTIONS -- sh -c SCRIPT`.
Ended run_shell(Words options, const std::string& script, const std::string& input = "");

// Returns the state of a process: "T" if it is stopped, "S" if it sleeps, and so on. The result is
// empty if there is no such process.
std::string process_state(pid_t pid);

std::string read_file(const std::string& path);
int count(const std::string& text, const std::string& part);
std::vector<std::string> lines_of(const std::string& text);

}  // namespace tutti::launcher_test
