#include "tools/run/agent_session.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <utility>
#include <vector>

#include <signal.h>
#include <tools/run/link.pb.h>
#include <unistd.h>

#include <tutti/address.h>
#include <tutti/version.h>

#include "core/error_text.h"
#include "rendezvous/launch/interfaces.h"
#include "tools/command_line.h"
#include "tools/processors.h"
#include "tools/run/guard.h"
#include "tools/run/link_limits.h"
#include "tools/run/task_record.h"

namespace tutti::tools {
namespace {

constexpr std::chrono::nanoseconds longest_sign_pause = std::chrono::seconds(1);

record::FromAgent problem_record(const StartFailure& failure) {
  record::FromAgent record;
  record.mutable_problem()->set_exit_status(static_cast<std::uint32_t>(failure.exit_status));
  record.mutable_problem()->set_text(failure.message);
  return record;
}

// Opens the meeting place at an address that ranks on all hosts can reach. Sets `doubt` to a text
// for the user if some hosts may not reach it.
Result<MeetingPlace> open_for(const Environment& environment, std::span<const SocketAddress> peers,
                              std::string& doubt) {
  const Result<std::vector<Interface>> interfaces = list_interfaces();
  if (!interfaces.ok()) return interfaces.status();
  const auto chosen = environment.find("TUTTI_SOCKET_IFNAME");
  const InterfaceFilter filter = interface_filter(chosen == environment.end() ? "" : chosen->second);
  const Result<MeetingAddress> address = address_among(*interfaces, filter, peers);
  if (!address.ok()) return address.status();
  doubt = address->doubt;
  return open_meeting_place(environment, address->address);
}

}  // namespace

AgentSession::AgentSession(meeting::Connection connection, OnAlive on_alive)
    : signals_(io_),
      life_timer_(io_),
      agent_(io_, static_cast<AgentEvents&>(*this)),
      on_alive_(std::move(on_alive)),
      lease_(LinkOptions().lease),
      exit_status_(exit_failure) {
  const LinkOptions options{.lease = lease_, .longest_record = longest_from_launcher};
  link_ = std::make_unique<Link>(loop_, std::move(connection), static_cast<LinkEvents&>(*this), options);
}

AgentSession::~AgentSession() = default;

int AgentSession::run() {
  for (const int number : signals_to_handle()) signals_.add(number);
  await_signals();
  // SIGPIPE must not end this process: a rank may close its stdin, or the reader of our stderr may
  // be gone. The agent has already saved the signal actions that the ranks will inherit.
  signal(SIGPIPE, SIG_IGN);
  show_life();
  greet();
  io_.run();
  return exit_status_;
}

// Only SIGTERM, SIGINT and SIGQUIT have an effect here. The parent of this process (for example
// ssh) may end before the job, and its signals must not disturb the job. The launcher sends signals
// for ranks over the link.
void AgentSession::await_signals() {
  signals_.async_wait([this](const asio::error_code& error, int number) {
    if (error) return;
    if (number == SIGTERM || number == SIGINT || number == SIGQUIT)
      abandon(std::string(strsignal(number)) + ": ending the ranks");
    await_signals();
  });
}

void AgentSession::show_life() {
  on_alive_(lease_);
  life_timer_.expires_after(std::min(longest_sign_pause, lease_ / 5));
  life_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) show_life();
  });
}

void AgentSession::greet() {
  record::FromAgent record;
  record::Hello& hello = *record.mutable_hello();
  hello.set_version(std::string(version()));
  hello.set_build(std::string(build()));
  hello.set_processors(static_cast<std::uint32_t>(usable_processors()));
  send(record);
}

void AgentSession::send(const record::FromAgent& record) {
  if (link_) link_->send(record);
}

void AgentSession::on_record(std::string_view bytes) {
  record::FromLauncher record;
  const bool is_record = record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (!is_record || !handle(record)) abandon("the launcher has sent something that makes no sense");
}

bool AgentSession::handle(const record::FromLauncher& record) {
  const auto what = record.what_case();
  if (what == record::FromLauncher::kLeaseNs) return take_lease(record.lease_ns());
  if (state_ == State::called) return false;
  if (what == record::FromLauncher::kMeet) return meet(record.meet());
  if (what == record::FromLauncher::kStart) return start(record.start());
  if (what == record::FromLauncher::kLeave) {
    leave();
    return true;
  }
  return state_ != State::idle && handle_running(record);
}

// These records may arrive after the last rank has ended, since the launcher may not yet know of that end.
bool AgentSession::handle_running(const record::FromLauncher& record) {
  const auto is_signal = [](int number) { return number > 0 && number <= SIGRTMAX; };
  switch (record.what_case()) {
    case record::FromLauncher::kSignal:
      if (!is_signal(record.signal())) return false;
      agent_.signal(record.signal());
      return true;
    case record::FromLauncher::kStop:
      if (!is_signal(record.stop())) return false;
      agent_.stop(record.stop());
      return true;
    case record::FromLauncher::kKill:
      agent_.kill();
      return true;
    case record::FromLauncher::kInput:
      return take_input(record.input());
    case record::FromLauncher::kCredit:
      return take_credit(record.credit());
    case record::FromLauncher::kSettle:
      settle(record.settle());
      return true;
    default:
      return false;
  }
}

bool AgentSession::take_lease(std::uint64_t nanoseconds) {
  if (nanoseconds == 0) return false;
  lease_ = time_of(nanoseconds);
  link_->set_lease(lease_);
  if (state_ == State::called) state_ = State::idle;
  show_life();
  return true;
}

bool AgentSession::meet(const record::Meet& meet) {
  if (state_ != State::idle || meeting_place_.store) return false;
  std::vector<SocketAddress> peers;
  for (const std::string& text : meet.peers()) {
    const std::optional<SocketAddress> peer = parse_address(text, 0);
    if (!peer) return false;
    peers.push_back(*peer);
  }
  record::FromAgent record;
  Result<MeetingPlace> opened =
      open_for(environment_here(meet.variables()), peers, *record.mutable_met()->mutable_doubt());
  if (!opened.ok()) {
    send(problem_record({exit_failure, opened.status().message()}));
    return true;
  }
  meeting_place_ = *std::move(opened);
  record.mutable_met()->set_address(meeting_place_.address);
  record.mutable_met()->set_store_port(meeting_place_.store->port());
  record.mutable_met()->set_master_port(static_cast<std::uint32_t>(meeting_place_.master_port));
  send(record);
  return true;
}

bool AgentSession::start(const record::Start& start) {
  std::optional<AgentTask> task = task_of(start);
  if (state_ != State::idle || !task) return false;
  state_ = State::running;
  output_credit_ = start.output_credit();
  if (chdir(start.folder().c_str()) != 0) {
    on_start_failure(
        {exit_failure, start.folder() + ": " + error_text(errno) + " (--wdir DIR names another folder)"});
    return true;
  }
  task->environment["PWD"] = std::filesystem::current_path();
  const bool has_launchers_path = std::ranges::any_of(
      start.variables(), [](const record::Variable& variable) { return variable.name() == "PATH"; });
  if (task->program.front().find('/') != std::string::npos) {
    hint_ = "; each host needs the program at the same path";
  } else if (!has_launchers_path) {
    hint_ = "; -x PATH passes on where programs are found here";
  }

  Descriptor input;
  if (start.input()) {
    input_.emplace(io_, [this](std::size_t bytes) {
      record::FromAgent record;
      record.set_taken(bytes);
      send(record);
    });
    input = input_->take_reader();
    task->input = input.get();
  }
  agent_.start(*task);
  record::FromAgent record;
  record.mutable_started();
  if (!has_problem_) send(record);
  return true;
}

void AgentSession::on_start_failure(const StartFailure& failure) {
  has_problem_ = true;
  const std::string hint = failure.exit_status == exit_not_found ? hint_ : "";
  send(problem_record({failure.exit_status, failure.message + hint}));
}

bool AgentSession::take_input(const record::Input& input) {
  if (!input_ || input_->has_ended() || input_->backlog() + input.bytes().size() > input_credit) return false;
  input_->write(input.bytes());
  if (input.end()) input_->end();
  return true;
}

bool AgentSession::take_credit(std::uint64_t bytes) {
  if (bytes > untaken_output_) return false;
  untaken_output_ -= bytes;
  if (untaken_output_ < output_credit_) agent_.set_reading(true);
  return true;
}

void AgentSession::on_output(int rank, Stream stream, std::string_view bytes) {
  if (!link_) return;
  record::FromAgent record;
  record.mutable_output()->set_rank(static_cast<std::uint32_t>(rank));
  record.mutable_output()->set_error(stream == Stream::err);
  record.mutable_output()->set_bytes(std::string(bytes));
  send(record);
  untaken_output_ += bytes.size();
  if (untaken_output_ >= output_credit_) agent_.set_reading(false);
}

void AgentSession::on_exit(const RankExit& exit) {
  const std::chrono::nanoseconds age = std::chrono::steady_clock::now() - exit.when;
  record::FromAgent record;
  record.mutable_exit()->set_rank(static_cast<std::uint32_t>(exit.rank));
  record.mutable_exit()->set_pid(exit.pid);
  record.mutable_exit()->set_code(exit.status.code);
  record.mutable_exit()->set_signal(exit.status.signal);
  record.mutable_exit()->set_age_ns(static_cast<std::uint64_t>(age.count()));
  send(record);
}

void AgentSession::settle(std::uint64_t number) {
  agent_.report_exits([this, number] {
    record::FromAgent record;
    record.set_settled(number);
    send(record);
  });
}

void AgentSession::on_done() {
  state_ = State::done;
  if (!link_) return io_.stop();
  record::FromAgent record;
  record.mutable_done();
  send(record);
}

void AgentSession::on_end(const Status& why) { abandon("the launcher is lost: " + why.message()); }

void AgentSession::leave() {
  exit_status_ = 0;
  end_without_launcher();
}

void AgentSession::abandon(const std::string& why) {
  if (!link_) return;
  std::cerr << "tutti agent: " << why << std::endl;
  end_without_launcher();
}

void AgentSession::end_without_launcher() {
  link_->close();
  link_.reset();
  if (state_ != State::running) return io_.stop();
  agent_.set_reading(true);  // a rank that is blocked in a write could not end
  agent_.stop();
}

}  // namespace tutti::tools
