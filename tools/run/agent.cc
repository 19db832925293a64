#include "tools/run/agent.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <asio/post.hpp>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "tools/command_line.h"
#include "tools/run/descendants.h"
#include "tools/run/environment.h"
#include "tools/run/start_failure.h"

namespace tutti::tools {
namespace {

constexpr std::size_t read_size = 64 * 1024;
// The agent reads at most this much of an ended rank's remaining output at once. A pipe holds fewer
// bytes. So any further output comes from the rank's descendants, and the usual handlers read it.
constexpr std::size_t most_drained = 1024 * 1024;

}  // namespace

Agent::Agent(asio::io_context& io, AgentEvents& events, const SpawnDefaults& defaults)
    : io_(io),
      events_(events),
      defaults_(defaults),
      child_signal_(io, SIGCHLD),
      kill_timer_(io),
      buffer_(read_size) {
  await_children();
}

void Agent::start(const AgentTask& task) {
  kill_grace_ = task.kill_grace;
  // This process raises its own limit on open files, since each rank needs two pipes and a process
  // descriptor. The ranks get the old limit.
  rlimit open_files = defaults_.open_files;
  open_files.rlim_cur = open_files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &open_files);

  const Result<std::vector<ProcessorSet>> processors =
      divide_processors(task.binding, static_cast<int>(task.ranks.size()));
  if (!processors.ok()) return events_.on_start_failure({exit_usage, processors.status().message()});

  const std::string search_path = search_path_of(task.environment);
  FoundProgram program = find_program(task.program.front(), search_path);
  for (std::size_t local_rank = 0; local_rank < task.ranks.size() && program.problem == 0; ++local_rank) {
    program.problem = start_rank(task, program.path, local_rank, (*processors)[local_rank]);
  }
  if (program.problem != 0) {
    events_.on_start_failure(cannot_start(task.program.front(), program, search_path));
  }
}

int Agent::start_rank(const AgentTask& task, const std::string& path, std::size_t local_rank,
                      const ProcessorSet& processors) {
  const int local_ranks = static_cast<int>(task.ranks.size());
  const RankPlace place{task.ranks[local_rank], task.world_size, static_cast<int>(local_rank), local_ranks};
  Environment environment = task.environment;
  set_rank_variables(environment, place);
  if (task.mpi_variables) set_mpi_variables(environment, place);
  limit_spinning(environment, local_ranks);
  share_processors(environment, local_ranks, processors);

  Descriptor ours[2];
  Descriptor theirs[2];
  Descriptor nothing;
  const bool has_input = place.rank == 0 && task.input >= 0;
  if (!has_input) nothing = Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if ((!has_input && !nothing) || !open_pipe(ours[0], theirs[0]) ||
      (!task.merge_stderr && !open_pipe(ours[1], theirs[1]))) {
    return errno;
  }
  SpawnRequest request;
  request.path = path;
  request.arguments = task.program;
  request.environment = to_strings(environment);
  request.input = has_input ? task.input : nothing.get();
  request.output = theirs[0].get();
  request.error = task.merge_stderr ? theirs[0].get() : theirs[1].get();
  request.processors = processors;
  const pid_t pid = spawn(request, defaults_);
  if (pid < 0) return -pid;

  watch(place.rank, pid, ours);
  return 0;
}

void Agent::watch(int rank, pid_t pid, std::span<Descriptor, 2> pipes) {
  locals_.push_back(std::make_unique<Local>(io_));
  Local& local = *locals_.back();
  local.rank = rank;
  local.pid = pid;
  local.running = true;
  ++running_;
  for (const Stream stream : {Stream::out, Stream::err}) {
    Pipe& pipe = local.pipes[static_cast<std::size_t>(stream)];
    pipe.owner = &local;
    pipe.stream = stream;
    Descriptor& end = pipes[static_cast<std::size_t>(stream)];
    if (!end) continue;
    pipe.end.assign(end.release());
    await_output(pipe);
  }
  await_exit(local);
}

// Waits for the process's exit on a process descriptor. Unlike SIGCHLD, such descriptors show the
// order in which processes end. SIGCHLD is used instead on kernels without such descriptors.
void Agent::await_exit(Local& local) {
  Descriptor exit = process_descriptor(local.pid);
  if (!exit) return;
  local.exit.assign(exit.release());
  local.exit.async_wait(asio::posix::stream_descriptor::wait_read,
                        [this, &local](const asio::error_code& error) {
                          if (error || !local.running) return;
                          int status = 0;
                          if (waitpid(local.pid, &status, WNOHANG) == local.pid) ended(local, status);
                        });
}

void Agent::await_children() {
  child_signal_.async_wait([this](const asio::error_code& error, int) {
    if (error) return;
    await_children();
    // `reap` must run after the handlers of exits that are already known. Otherwise exits would be reported
    // out of order.
    asio::post(io_, [this] { reap(); });
  });
}

void Agent::await_output(Pipe& pipe) {
  if (pipe.waiting || !reading_ || !pipe.end.is_open()) return;
  pipe.waiting = true;
  pipe.end.async_wait(asio::posix::stream_descriptor::wait_read,
                      [this, &pipe](const asio::error_code& error) {
                        pipe.waiting = false;
                        if (error) return;
                        if (reading_) read_some(pipe);
                        await_output(pipe);
                      });
}

// Reads from the pipe once. Returns false if the pipe has no data now or is closed.
bool Agent::read_some(Pipe& pipe) {
  if (!pipe.end.is_open()) return false;
  const ssize_t bytes = read(pipe.end.native_handle(), buffer_.data(), buffer_.size());
  if (bytes > 0) {
    const std::string_view text(buffer_.data(), static_cast<std::size_t>(bytes));
    events_.on_output(pipe.owner->rank, pipe.stream, text);
    return true;
  }
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  asio::error_code ignored;
  pipe.end.close(ignored);
  return false;
}

void Agent::drain(Local& local) {
  for (Pipe& pipe : local.pipes) {
    for (std::size_t rounds = most_drained / read_size; rounds > 0 && read_some(pipe); --rounds) {
    }
  }
}

void Agent::ended(Local& local, int wait_status) {
  const auto when = std::chrono::steady_clock::now();
  local.running = false;
  --running_;
  asio::error_code ignored;
  local.exit.close(ignored);
  drain(local);
  events_.on_exit({local.rank, local.pid, ExitStatus::of_wait_status(wait_status), when});
  if (running_ == 0) asio::post(io_, [this] { reap(); });
}

Agent::Local* Agent::find(pid_t pid) {
  for (const auto& local : locals_) {
    if (local->running && local->pid == pid) return local.get();
  }
  return nullptr;
}

// Reaps all children that have ended: ranks, and orphans that this process has inherited.
void Agent::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0) break;
    if (pid < 0) {
      if (errno != ECHILD) continue;
      if (running_ == 0) finish();
      return;
    }
    if (Local* local = find(pid)) ended(*local, status);
  }
  if (running_ == 0) end_leftovers();
}

// Ends descendants that are still alive after their ranks have ended.
void Agent::end_leftovers() {
  if (killing_) {
    kill();
  } else if (stopping_) {
    signal_leftovers(SIGTERM);
  } else {
    stop();
  }
}

// Sends the signal to each leftover process once. A process may need time to end, so later calls do
// not signal it again.
void Agent::signal_leftovers(int number) {
  for (const pid_t pid : leftovers()) {
    if (signalled_.insert(pid).second) ::kill(pid, number);
  }
}

std::vector<pid_t> Agent::leftovers() {
  std::vector<pid_t> result = living_children();
  std::erase_if(result, [this](pid_t pid) { return find(pid) != nullptr; });
  return result;
}

void Agent::signal(int number) {
  for (const auto& local : locals_) {
    if (local->running) ::kill(-local->pid, number);
  }
}

void Agent::stop(int number) {
  if (stopping_ || done_) return;
  stopping_ = true;
  signal(number);
  signal(SIGCONT);  // a stopped process cannot handle a signal
  signal_leftovers(number);
  kill_timer_.expires_after(kill_grace_);
  kill_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) kill();
  });
  if (running_ == 0) asio::post(io_, [this] { reap(); });
}

void Agent::kill() {
  if (done_) return;
  stopping_ = killing_ = true;
  signal(SIGKILL);
  for (const pid_t pid : leftovers()) ::kill(pid, SIGKILL);
}

void Agent::set_reading(bool reading) {
  if (reading_ == reading) return;
  reading_ = reading;
  if (!reading_) return;
  for (const auto& local : locals_) {
    for (Pipe& pipe : local->pipes) await_output(pipe);
  }
}

std::string Agent::host_of(int) const {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

void Agent::report_exits(std::function<void()> then) {
  // `reap` must run after the handlers of exits that are already known, as in `await_children`.
  asio::post(io_, [this, then = std::move(then)] {
    reap();
    then();
  });
}

void Agent::finish() {
  if (done_) return;
  done_ = true;
  kill_timer_.cancel();
  child_signal_.cancel();
  for (const auto& local : locals_) {
    drain(*local);
    asio::error_code ignored;
    for (Pipe& pipe : local->pipes) pipe.end.close(ignored);
  }
  events_.on_done();
}

}  // namespace tutti::tools
