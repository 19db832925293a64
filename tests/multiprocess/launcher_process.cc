#include "tests/multiprocess/launcher_process.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace tutti::launcher_test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds longest_run(300);
constexpr seconds longest_death(120);

std::string new_mark() {
  static std::atomic<int> number = 0;
  return "LAUNCHER_TEST_MARK=" + std::to_string(getpid()) + "." + std::to_string(++number);
}

// Returns whether a launcher sets the variable. The test itself may run under a launcher, and the
// commands under test must not get that launcher's variables.
bool belongs_to_a_launcher(const std::string& variable) {
  for (const std::string prefix : {"TUTTI_", "RANK=", "WORLD_SIZE=", "LOCAL_RANK=", "MASTER_"}) {
    if (variable.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

std::vector<char*> pointers(Words& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void execute(const int (&ends)[3], char* const* arguments, char* const* environment) {
  setpgid(0, 0);
  for (int target = 0; target < 3; ++target) dup2(ends[target], target);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(arguments[0], arguments, environment);
  _exit(99);
}

// Appends the available output. Returns false at the end of the output.
bool take(int& fd, std::string& text) {
  char bytes[65536];
  const ssize_t got = read(fd, bytes, sizeof bytes);
  if (got > 0) text.append(bytes, static_cast<std::size_t>(got));
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return true;
  close(fd);
  fd = -1;
  return false;
}

}  // namespace

Command::Command(const Words& arguments, const std::string& input, const Words& variables)
    : mark_(new_mark()), input_(input) {
  Words program = {TUTTI_BIN_DIR "/tutti"};
  program.insert(program.end(), arguments.begin(), arguments.end());
  Words environment = {mark_};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!belongs_to_a_launcher(*entry)) environment.emplace_back(*entry);
  }
  environment.insert(environment.end(), variables.begin(), variables.end());
  const auto argument_pointers = pointers(program);
  const auto environment_pointers = pointers(environment);

  int in[2];
  int out[2];
  int err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) execute({in[0], out[1], err[1]}, argument_pointers.data(), environment_pointers.data());
  for (const int fd : {in[0], out[1], err[1]}) close(fd);
  in_ = in[1];
  out_ = out[0];
  err_ = err[0];
  for (const int fd : {in_, out_, err_}) fcntl(fd, F_SETFL, O_NONBLOCK);
  ::signal(SIGPIPE, SIG_IGN);
}

Command::~Command() {
  for (const pid_t pid : marked()) kill(pid, SIGKILL);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  for (const int fd : {in_, out_, err_}) {
    if (fd >= 0) close(fd);
  }
}

void Command::signal(int number) const { kill(pid_, number); }

void Command::read_output(int timeout_ms) {
  if (in_ >= 0) {
    const ssize_t written = write(in_, input_.data(), input_.size());
    if (written > 0) input_.erase(0, static_cast<std::size_t>(written));
    if (input_.empty() || (written < 0 && errno != EAGAIN)) {
      close(in_);
      in_ = -1;
    }
  }
  pollfd both[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  poll(both, 2, timeout_ms);
  if (both[0].revents != 0) take(out_, result_.out);
  if (both[1].revents != 0) take(err_, result_.err);
}

bool Command::wait_for_output(const std::string& text, int times) {
  const auto deadline = Clock::now() + longest_run;
  while (count(result_.out, text) < times) {
    if (Clock::now() > deadline || out_ < 0) return false;
    read_output(100);
  }
  return true;
}

Ended Command::wait() {
  const auto deadline = Clock::now() + longest_run;
  int status = 0;
  for (;;) {
    read_output(20);
    const bool ended = waitpid(pid_, &status, WNOHANG) == pid_;
    if (ended) break;
    if (Clock::now() > deadline) {
      ADD_FAILURE() << "still running after five minutes; so far it said\n" << result_.out << result_.err;
      return result_;
    }
  }
  pid_ = -1;
  for (int i = 0; i < 3 && (out_ >= 0 || err_ >= 0); ++i) {
    while (out_ >= 0 && read(out_, nullptr, 0) == 0 && take(out_, result_.out) && errno != EAGAIN) {
    }
    read_output(0);
  }
  result_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result_;
}

std::vector<pid_t> Command::marked() const {
  std::vector<pid_t> result;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"), closedir);
  while (const dirent* entry = readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string variables = read_file("/proc/" + name + "/environ");
    if (variables.find(mark_ + '\0') == std::string::npos) continue;
    const pid_t pid = std::stoi(name);
    if (const std::string state = process_state(pid); !state.empty() && state != "Z" && state != "X") {
      result.push_back(pid);
    }
  }
  return result;
}

bool Command::wait_until_gone() const {
  const auto deadline = Clock::now() + longest_death;
  while (!marked().empty()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

Ended tutti(const Words& arguments, const std::string& input, const Words& variables) {
  Command command(arguments, input, variables);
  const Ended result = command.wait();
  EXPECT_TRUE(command.marked().empty()) << "processes are left behind";
  return result;
}

Ended run_shell(Words options, const std::string& script, const std::string& input) {
  options.insert(options.begin(), "run");
  options.insert(options.end(), {"--", "sh", "-c", script});
  return tutti(options, input);
}

std::string process_state(pid_t pid) {
  const std::string text = read_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t end_of_name = text.rfind(')');
  return end_of_name == std::string::npos || end_of_name + 2 >= text.size() ? ""
                                                                            : text.substr(end_of_name + 2, 1);
}

// This function uses no iterators over the file, since they throw if the file is in /proc and its process
// ends during the read.
std::string read_file(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int count(const std::string& text, const std::string& part) {
  int result = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++result;
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

}  // namespace tutti::launcher_test
