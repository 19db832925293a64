#include "tests/support/process.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace tutti::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds poll_interval{2};

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Returns whether launchers or outer test runs use this variable to tell a program its place in a
// job.
bool from_a_launcher(std::string_view name) {
  static constexpr std::array prefixes{"TUTTI_",          "OMPI_",  "PMI_",  "PMIX_",    "SLURM_",
                                       "JOB_COMPLETION_", "NODES_", "NODE_", "MPI_LOCAL"};
  static constexpr std::array names{"RANK",        "WORLD_SIZE",  "LOCAL_RANK",         "LOCAL_WORLD_SIZE",
                                    "MASTER_ADDR", "MASTER_PORT", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"};
  for (const std::string_view prefix : prefixes) {
    if (name.starts_with(prefix)) return true;
  }
  for (const std::string_view one : names) {
    if (name == one) return true;
  }
  return false;
}

std::vector<std::string> child_environment(const Process::Environment& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    if (!from_a_launcher(name) && !changes.contains(name)) result.emplace_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (value) result.push_back(name + "=" + *value);
  }
  return result;
}

// Returns the lowest port that the kernel gives to a process that asks for any port.
int first_ephemeral_port() {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first > 11'000 ? first : 32'768;
}

}  // namespace

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

std::string program_of(pid_t pid) {
  std::string name;
  std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> name;
  return name;
}

std::string contents(int file) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t got = pread(file, part.data(), part.size(), static_cast<off_t>(text.size()));
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

Process::Process(const std::vector<std::string>& command, const Environment& environment,
                 const std::string& directory) {
  for (const std::string& word : command) command_ += (command_.empty() ? "" : " ") + word;
  out_ = memfd_create("stdout", MFD_CLOEXEC);
  err_ = memfd_create("stderr", MFD_CLOEXEC);
  if (out_ < 0 || err_ < 0) fail("memfd_create");

  // All memory is allocated here, since only async-signal-safe calls are allowed between fork and exec.
  std::vector<std::string> words = command;
  std::vector<std::string> variables = child_environment(environment);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(variables);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(out_, STDOUT_FILENO);
    dup2(err_, STDERR_FILENO);
    if (!directory.empty() && chdir(directory.c_str()) != 0) _exit(127);
    execvpe(argv[0], argv.data(), envp.data());
    constexpr std::string_view message = "cannot execute it\n";
    if (write(STDERR_FILENO, message.data(), message.size()) < 0) _exit(126);
    _exit(127);
  }
  setpgid(pid_, pid_);  // both processes call this, so that a kill never misses the group
}

Process::~Process() {
  // No other process group can have the number `pid_`, since the child has not been reaped yet.
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(out_);
  close(err_);
}

bool Process::poll() {
  if (status_) return true;
  siginfo_t ended = {};
  if (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid != pid_)
    return false;
  status_ = ended.si_code == CLD_EXITED ? ended.si_status : 128 + ended.si_status;
  return true;
}

std::optional<int> Process::wait(std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  while (!poll() && Clock::now() < end) std::this_thread::sleep_for(poll_interval);
  return status_;
}

void Process::signal(int number) {
  if (!poll()) kill(pid_, number);
}

std::string Process::out() const { return contents(out_); }
std::string Process::err() const { return contents(err_); }

bool Process::wait_for_output(std::string_view text, std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  for (;;) {
    const bool over = poll() || Clock::now() >= end;
    if (out().find(text) != std::string::npos) return true;
    if (over) return false;
    std::this_thread::sleep_for(poll_interval);
  }
}

std::string Process::report() const {
  return "command: " + command_ + "\nstatus: " + (status_ ? std::to_string(*status_) : "still running") +
         "\nstdout:\n" + out() + "\nstderr:\n" + err();
}

std::uint16_t unused_port() {
  std::random_device random;
  std::uniform_int_distribution<int> ports(10'000, first_ephemeral_port() - 1);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto port = static_cast<std::uint16_t>(ports(random));
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0) fail("socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const bool free = bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    close(listener);
    if (free) return port;
  }
  throw std::runtime_error("no unused port found");
}

}  // namespace tutti::test
