#include "tools/run/job.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <utility>

#include <signal.h>
#include <unistd.h>

#include <tutti/address.h>

#include "core/random.h"
#include "tools/command_line.h"
#include "tools/run/agent.h"
#include "tools/run/environment.h"
#include "tools/run/guard.h"
#include "tools/run/report.h"

namespace tutti::tools {
namespace {

// At most this many bytes of output may wait for the readers of our stdout and stderr. If there are
// more, the ranks must wait.
constexpr std::size_t most_backlog = 1024 * 1024;

bool ends_job(int number) {
  return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

}  // namespace

Job::Job(RunOptions options)
    : options_(std::move(options)),
      defaults_(SpawnDefaults::of_this_process()),
      signals_(io_),
      output_(io_, options_.output) {
  output_.on_progress([this] {
    end_unread();
    if (done_ && output_.backlog() == 0) io_.stop();
    agents_->set_reading(output_.backlog() < most_backlog);
  });
}

int Job::run() {
  for (const int number : signals_to_handle()) signals_.add(number);
  await_signals();
  // A write should fail with an error if the reader of our output exits or a file reaches its size
  // limit. By default, SIGPIPE or SIGXFSZ would end this process instead, while the ranks are still
  // running. `defaults_` has the signal actions that the ranks will inherit.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);

  AgentTask task;
  if (const std::optional<StartFailure> failure = prepare(task)) {
    output_.note("tutti run: " + failure->message + "\n");
    return failure->exit_status;
  }
  agents_->start(task);
  io_.run();
  return exit_status();
}

std::optional<StartFailure> Job::prepare(AgentTask& task) {
  task.environment = environment_of_process();
  for (const std::string& name : apply_exports(task.environment, options_.exports)) {
    on_note(missing_export(name));
  }
  provide_token(task.environment);
  task.program = options_.program;
  task.input = STDIN_FILENO;
  task.merge_stderr = options_.output.merge_stderr;
  task.binding = options_.binding;
  task.mpi_variables = options_.mpi_env;
  task.kill_grace = options_.kill_grace;

  Result<HostPlan> plan = plan_hosts(options_, task.environment);
  if (!plan.ok()) return StartFailure{exit_usage, plan.status().message()};
  if (!plan->remark.empty()) on_note(plan->remark);
  if (plan->ranks) {
    if (auto failure = set_ranks(*plan->ranks)) return failure;
  }
  if (plan->hosts.empty()) return prepare_here(task);
  agents_ =
      std::make_unique<Hosts>(io_, static_cast<HostsEvents&>(*this), options_, *std::move(plan), defaults_);
  return {};
}

// Prepares a job whose ranks all run on this machine, as children of this process.
std::optional<StartFailure> Job::prepare_here(AgentTask& task) {
  agents_ = std::make_unique<Agent>(io_, static_cast<AgentEvents&>(*this), defaults_);
  if (auto failure = enter_folder(task.environment)) return failure;
  Result<MeetingPlace> meeting_place = open_meeting_place(task.environment, loopback);
  if (!meeting_place.ok()) return StartFailure{exit_failure, meeting_place.status().message()};
  meeting_place_ = *std::move(meeting_place);

  JobPlace place;
  place.id = random_hex(8);
  place.store = format_endpoint(meeting_place_.address, meeting_place_.store->port());
  place.master_address = meeting_place_.address;
  place.master_port = meeting_place_.master_port;
  set_job_variables(task.environment, place);
  task.ranks.resize(static_cast<std::size_t>(ranks_));
  std::iota(task.ranks.begin(), task.ranks.end(), 0);
  task.world_size = ranks_;
  return {};
}

// Changes this process's working folder, which the ranks inherit. So a relative path in a variable
// such as TUTTI_TOKEN_FILE names the same file for this process and the ranks.
std::optional<StartFailure> Job::enter_folder(Environment& environment) {
  if (options_.folder.empty()) return {};
  if (chdir(options_.folder.c_str()) != 0) {
    return StartFailure{exit_failure, "--wdir " + options_.folder + ": " + std::strerror(errno)};
  }
  environment["PWD"] = std::filesystem::current_path();
  return {};
}

std::optional<StartFailure> Job::set_ranks(int ranks) {
  ranks_ = running_ = ranks;
  const Status status = output_.open(ranks);
  if (!status.ok()) return StartFailure{exit_failure, status.message()};
  return {};
}

void Job::on_placed(int ranks) {
  if (const auto failure = set_ranks(ranks)) on_start_failure(*failure);
}

void Job::on_start_failure(const StartFailure& failure) {
  output_.note("tutti run: " + failure.message + "\n");
  failure_ = failure.exit_status;
  end();
}

void Job::on_output(int rank, Stream stream, std::string_view bytes) {
  output_.write(rank, stream, bytes);
  end_unread();
  if (output_.backlog() >= most_backlog) agents_->set_reading(false);
}

// Ends the job without a message if its output has no reader any more, as in `tutti run ... |
// head`. The exit status is then that of a program that SIGPIPE has ended.
void Job::end_unread() {
  if (ending_signal_ || !output_.unread()) return;
  ending_signal_ = SIGPIPE;
  agents_->stop();
}

void Job::on_exit(const RankExit& exit) {
  const ExitStatus status = exit.status;
  output_.finish(exit.rank);
  --running_;
  if (status.success()) {
    // A rank has succeeded, so the job has survived its earlier failures.
    if (++succeeded_ == 1 && options_.enable_recovery) failure_.reset();
    return;
  }
  // An earlier failure or a request to end caused this failure.
  if (ending_ || ending_signal_) return;
  if (!failure_) failure_ = status.signal != 0 ? exit_signal_base + status.signal : status.code;
  report_failure(exit);
  if (!survives(status)) end();
}

// Returns whether the other ranks continue after a rank has ended with this status.
bool Job::survives(const ExitStatus& status) const {
  return options_.enable_recovery || (!options_.abort_on_non_zero && status.signal == 0);
}

void Job::end() {
  ending_ = true;
  agents_->stop();
}

void Job::report_failure(const RankExit& exit) {
  RankFailure failure{
      .rank = exit.rank, .host = agents_->host_of(exit.rank), .pid = exit.pid, .status = exit.status};
  failure.others = what_others_do(survives(exit.status));
  failure.stream = options_.output.merge_stderr ? "output" : "stderr";
  failure.last_lines = output_.last_lines(exit.rank);
  failure.by_agent = meeting_place_.store == nullptr;
  output_.note(failure_report(failure));
}

std::string Job::what_others_do(bool survives) const {
  if (survives) return running_ > 0 ? "the others continue" : "";
  return ranks_ > 1 ? "the others are being ended" : "";
}

// The loss of a host counts as a failure of each of its ranks.
void Job::on_lost(const std::string& host, std::span<const int> ranks, const std::string& why) {
  for (const int rank : ranks) output_.finish(rank);
  running_ -= static_cast<int>(ranks.size());
  const std::string others = what_others_do(options_.enable_recovery);
  output_.note(lost_report({.host = host, .ranks = ranks, .why = why, .others = others}));
  if (ending_ || ending_signal_) return;
  if (!failure_) failure_ = exit_failure;
  if (!options_.enable_recovery) end();
}

void Job::on_note(const std::string& text) { output_.note("tutti run: " + text + "\n"); }

void Job::on_done() {
  done_ = true;
  if (output_.backlog() == 0) io_.stop();
}

void Job::await_signals() {
  signals_.async_wait([this](const asio::error_code& error, int number) {
    if (error) return;
    on_signal(number);
    await_signals();
  });
}

void Job::on_signal(int number) {
  if (number == SIGTSTP) {
    agents_->signal(SIGSTOP);  // the ranks' session has no terminal, so SIGTSTP would stop no rank
  } else if (!ends_job(number)) {
    agents_->signal(number);
  } else if (done_) {
    io_.stop();  // all ranks have ended, and this process only waits for the reader of its output
  } else if (ending_signal_) {
    agents_->kill();
    output_.discard_backlog();
  } else {
    ending_signal_ = number;
    output_.note(std::string("tutti run: ") + strsignal(number) + ": ending the ranks\n");
    agents_->stop(number);
  }
}

int Job::exit_status() const {
  if (failure_) return *failure_;
  const bool all_succeeded = succeeded_ > 0 && succeeded_ == ranks_;
  if (ending_signal_ && !all_succeeded) return exit_signal_base + *ending_signal_;
  return output_.lost() ? exit_output_lost : 0;
}

}  // namespace tutti::tools
