#include "tools/run/starter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tutti/config_values.h>

#include "core/descriptor.h"
#include "core/security/digest.h"
#include "core/shown.h"
#include "rendezvous/launch/environment.h"
#include "tools/command_line.h"
#include "tools/run/environment.h"
#include "tools/run/report.h"
#include "tools/run/start_failure.h"

namespace tutti::tools {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view secret_heading = "tutti-agent 1 ";
constexpr std::size_t secret_digits = 64;
// A login script may write this much to stdout before the agent's secret.
constexpr std::size_t most_noise = 64 * 1024;
constexpr std::size_t longest_line = 1024;
constexpr std::size_t most_said = 10;
// This many reads empty a full pipe.
constexpr int most_reads = 16;
constexpr std::chrono::milliseconds first_pause = std::chrono::milliseconds(500);
constexpr std::chrono::milliseconds longest_pause = std::chrono::seconds(5);
constexpr std::chrono::seconds grace_period(2);
constexpr int ssh_has_failed = 255;

// A line of ssh that contains one of these texts shows that no later try can succeed.
constexpr std::string_view refusals[] = {"Permission denied (", "Host key verification failed",
                                         "Too many authentication failures"};
// The dynamic loaders of glibc and musl write one of these texts if a shared library is missing.
constexpr std::string_view loader_errors[] = {"error while loading shared libraries",
                                              "Error loading shared library"};
// A line of srun that contains one of these texts also shows that no later try can succeed.
constexpr std::string_view srun_refusals[] = {"Unable to create step for job", "Invalid job id specified",
                                              "srun: fatal: "};
constexpr std::string_view agent_error = "tutti agent: ";

// Returns a handler that calls `act`. It does nothing if the starter no longer exists or if the
// wait was cancelled.
template <class Act>
auto unless_gone(std::weak_ptr<void> starter, Act act) {
  return [starter = std::move(starter), act = std::move(act)](const asio::error_code& error) {
    if (!error && !starter.expired()) act();
  };
}

std::string with_lines(std::string text, const Lines& lines) {
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

// Returns the secret at the end of the line, or an empty text. A login script may have written text
// without a newline, which then precedes the secret.
std::string_view secret_of(std::string_view line) {
  if (line.size() < secret_heading.size() + secret_digits) return {};
  const std::string_view secret = line.substr(line.size() - secret_digits);
  line.remove_suffix(secret_digits);
  const bool is_secret =
      line.ends_with(secret_heading) && secret.find_first_not_of("0123456789abcdef") == secret.npos;
  return is_secret ? secret : std::string_view();
}

// Finds the first line that contains one of the texts. Returns the rest of this line from that text
// on, or an empty text.
template <std::size_t count>
std::string from_first_of(const Lines& lines, const std::string_view (&texts)[count]) {
  for (const std::string& line : lines) {
    for (const std::string_view text : texts) {
      if (const std::size_t begin = line.find(text); begin != line.npos) return line.substr(begin);
    }
  }
  return {};
}

// Returns why the command has failed permanently, if its status or its last lines show a known
// reason.
std::string known_failure(const StarterTask& task, ExitStatus status, const Lines& said) {
  const std::string host = "host " + task.host;
  if (status.code == ssh_has_failed) {
    const std::string refusal = from_first_of(said, refusals);
    if (refusal.empty()) return {};
    return host + ": " + refusal + "\n  To see what is wrong, try: " + trial_by_hand(task.command);
  }
  if (task.tool == "srun") {
    const std::string refusal = from_first_of(said, srun_refusals);
    if (!refusal.empty()) return with_lines(host + ": srun has failed:", said);
  }
  if (status.code == exit_not_found) {
    const std::string missing_library = from_first_of(said, loader_errors);
    if (!missing_library.empty()) return host + ": " + task.agent_path + ": " + missing_library;
    return with_lines(
        host + " has no " + task.agent_path + ": install it there, or name its folder with --prefix DIR",
        said);
  }
  if (status.code == exit_cannot_execute) {
    return with_lines(host + " cannot execute " + task.agent_path + ":", said);
  }
  return {};
}

// Returns a message that the command has failed permanently.
std::string unknown_failure(const StarterTask& task, ExitStatus status, const Lines& said) {
  const std::string host = "host " + task.host + ": ";
  if (!said.empty() && said.back().starts_with(agent_error)) {
    return host + said.back().substr(agent_error.size());
  }
  return with_lines(host + task.tool + " " + describe(status) + (said.empty() ? "" : ":"), said);
}

std::string noise_failure(const StarterTask& task) {
  return "host " + task.host + ": " + task.tool + " has written more than " + format_size(most_noise) +
         " to stdout, without the secret of an agent";
}

// Returns the time until the deadline in whole seconds. Rounding up gives the user's value again,
// since a little of the time has already passed.
std::string limit_of(Deadline deadline) {
  return format_duration(std::chrono::ceil<std::chrono::seconds>(deadline.remaining()));
}

}  // namespace

Starter::Starter(asio::io_context& io, StarterTask task, StarterEvents& events)
    : task_(std::move(task)),
      events_(events),
      limit_(limit_of(task_.deadline)),
      out_(io),
      err_(io),
      exit_(io),
      deadline_timer_(io),
      pause_timer_(io),
      kill_timer_(io),
      pause_(first_pause),
      alive_(std::make_shared<char>()) {}

Starter::~Starter() {
  if (!runs()) return;
  signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Starter::start() {
  if (!task_.deadline.is_never()) {
    deadline_timer_.expires_at(task_.deadline.when());
    deadline_timer_.async_wait(unless_gone(alive_, [this] { give_up_in_time(); }));
  }
  run_command();
}

void Starter::run_command() {
  if (over_ || up_) return;
  if (!said_.empty()) said_before_ = std::exchange(said_, {});
  noise_ = 0;
  has_secret_ = false;

  const std::string search_path = search_path_of(task_.environment);
  FoundProgram program = find_program(task_.command.front(), search_path);
  if (program.problem == 0) program.problem = spawn_command(program.path);
  if (program.problem == 0) return;
  fail("host " + task_.host + ": " + cannot_start(task_.command.front(), program, search_path).message);
}

int Starter::spawn_command(const std::string& path) {
  Descriptor ours[2];
  Descriptor theirs[2];
  const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing || !open_pipe(ours[0], theirs[0]) || !open_pipe(ours[1], theirs[1])) return errno;
  SpawnRequest request;
  request.path = path;
  request.arguments = task_.command;
  request.environment = to_strings(task_.environment);
  request.input = nothing.get();
  request.output = theirs[0].get();
  request.error = theirs[1].get();
  const pid_t pid = spawn(request, task_.defaults);
  if (pid < 0) return -pid;

  Descriptor exit = process_descriptor(pid);
  if (!exit) {
    const int problem = errno;
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return problem;
  }
  pid_ = pid;
  exit_.assign(exit.release());
  out_.end.assign(ours[0].release());
  err_.end.assign(ours[1].release());
  await_exit();
  await_output(out_);
  await_output(err_);
  return 0;
}

void Starter::await_exit() {
  exit_.async_wait(asio::posix::stream_descriptor::wait_read, unless_gone(alive_, [this] { ended(); }));
}

void Starter::await_output(Pipe& pipe) {
  if (!pipe.end.is_open()) return;
  pipe.end.async_wait(asio::posix::stream_descriptor::wait_read, unless_gone(alive_, [this, &pipe] {
                        read_some(pipe);
                        await_output(pipe);
                        if (noise_ > most_noise && !over_ && !up_) fail(noise_failure(task_));
                      }));
}

// Reads from the pipe once. Returns false if the pipe has no data now or is closed.
bool Starter::read_some(Pipe& pipe) {
  if (!pipe.end.is_open()) return false;
  std::array<char, 8 * 1024> buffer;
  const ssize_t bytes = read(pipe.end.native_handle(), buffer.data(), buffer.size());
  if (bytes > 0) {
    take(pipe, std::string_view(buffer.data(), static_cast<std::size_t>(bytes)));
    if (&pipe == &out_) security::wipe(buffer);  // the buffer may have held the secret
    return true;
  }
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  asio::error_code ignored;
  pipe.end.close(ignored);
  return false;
}

void Starter::take(Pipe& pipe, std::string_view bytes) {
  if (&pipe == &out_) {
    if (has_secret_ || up_) return;  // stdout is not needed any more
    noise_ += bytes.size();
  }
  for (;;) {
    const std::size_t end = bytes.find('\n');
    pipe.line += bytes.substr(0, end);
    if (end == bytes.npos) break;
    bytes.remove_prefix(end + 1);
    take_line(pipe);
  }
  // The agent's secret may follow a long text on stdout, which `most_noise` limits.
  if (&pipe == &err_ && pipe.line.size() > longest_line) take_line(pipe);
}

void Starter::take_line(Pipe& pipe) {
  std::string text = std::exchange(pipe.line, {});
  std::string_view line = text;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (&pipe == &err_) {
    say(line);
  } else if (!has_secret_ && !up_) {
    const std::string_view secret = secret_of(line);
    if (secret.empty()) return say(line);
    has_secret_ = true;
    noise_ = 0;
    events_.on_secret(secret);
    security::wipe(text);
  }
}

void Starter::say(std::string_view line) {
  const std::string text = printable(std::string(line.substr(0, longest_line)));
  if (up_) return events_.on_line(text);
  if (text.empty()) return;
  if (said_.size() == most_said) said_.erase(said_.begin());
  said_.push_back(text);
}

// Reads all bytes that are in the pipe now.
void Starter::drain(Pipe& pipe) {
  for (int reads = most_reads; reads > 0 && read_some(pipe); --reads) {
  }
}

void Starter::ended() {
  for (Pipe* pipe : {&out_, &err_}) {
    drain(*pipe);
    if (!pipe->line.empty()) take_line(*pipe);
  }
  // An agent that has started may still need other processes of the command.
  const bool serves_agent = (has_secret_ || up_) && !over_;
  if (!serves_agent) signal(SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  asio::error_code ignored;
  exit_.close(ignored);
  kill_timer_.cancel();
  if (!over_ && !up_) judge(ExitStatus::of_wait_status(status));
}

// Handles the end of a command whose agent has not called back.
void Starter::judge(ExitStatus status) {
  // The command may end as soon as the agent has called back. This process may not have noticed the
  // call yet.
  if (has_secret_ && status.success()) return;
  close_pipes();
  if (noise_ > most_noise) return fail(noise_failure(task_));
  const std::string failure = known_failure(task_, status, said_);
  if (!failure.empty()) return fail(failure);
  if (!may_pass(status)) return fail(unknown_failure(task_, status, said_));
  try_again(status);
}

// Returns whether a later try may succeed. ssh exits with 255 if it cannot reach the host. Any
// other status comes from the agent or the login shell. A program that replaces ssh may have no
// status for this purpose.
bool Starter::may_pass(ExitStatus status) const {
  if (!task_.tries_again || status.success()) return false;
  if (status.signal != 0) return true;
  return task_.tool == "ssh" ? status.code == ssh_has_failed : !has_secret_;
}

void Starter::try_again(ExitStatus status) {
  ++failures_;
  has_secret_ = false;
  last_failure_ = said_.empty() ? task_.tool + " " + describe(status) : said_.back();
  pause_timer_.expires_after(pause_);
  pause_timer_.async_wait(unless_gone(alive_, [this] { run_command(); }));
  pause_ = std::min(2 * pause_, longest_pause);
}

void Starter::give_up_in_time() {
  if (over_ || up_) return;
  Lines lines = said_.empty() ? said_before_ : said_;
  if (has_secret_ || lines.empty()) lines.push_back(state());
  fail(with_lines("host " + task_.host + " did not come up within " + limit_ + ":", lines));
}

void Starter::fail(const std::string& text) {
  over_ = true;
  deadline_timer_.cancel();
  pause_timer_.cancel();
  if (runs()) signal(SIGKILL);
  close_pipes();
  events_.on_failure(text);  // may destroy the starter
}

void Starter::came_up() {
  drain(err_);  // the earlier lines on stderr are not needed any more
  up_ = true;
  deadline_timer_.cancel();
  pause_timer_.cancel();
}

void Starter::stop() {
  if (over_) return;
  over_ = true;
  deadline_timer_.cancel();
  pause_timer_.cancel();
  if (!runs()) return;
  if (!up_) signal(SIGTERM);
  kill_timer_.expires_after(grace_period);
  kill_timer_.async_wait(unless_gone(alive_, [this] {
    if (runs()) signal(SIGKILL);
  }));
}

std::string Starter::state() const {
  if (has_secret_) return "its agent has not called back";
  if (failures_ == 0) return task_.tool + " is running";
  return last_failure_ +
         (failures_ == 1 ? " (tried once)" : " (tried " + std::to_string(failures_) + " times)");
}

// Signals the process group, since the command may be a script that runs another program.
void Starter::signal(int number) { ::kill(-pid_, number); }

void Starter::close_pipes() {
  asio::error_code ignored;
  for (Pipe* pipe : {&out_, &err_}) pipe->end.close(ignored);
}

}  // namespace tutti::tools
