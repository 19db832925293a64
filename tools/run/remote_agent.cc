#include "tools/run/remote_agent.h"

#include <algorithm>
#include <utility>

#include <sys/socket.h>
#include <tools/run/link.pb.h>

#include <tutti/config_values.h>
#include <tutti/types.h>
#include <tutti/version.h>

#include "core/shown.h"
#include "tools/command_line.h"
#include "tools/run/link_limits.h"
#include "tools/run/task_record.h"

namespace tutti::tools {
namespace {

// The agent gets new credit for its ranks' output each time that this much has arrived.
constexpr std::uint64_t credit_step = output_credit / 4;

std::optional<SocketAddress> peer_of(int socket) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return {};
  return address;
}

std::string tutti_of(std::string_view its_version, std::string_view its_build) {
  return std::string(its_version) + " (build " + std::string(its_build) + ")";
}

}  // namespace

RemoteAgent::RemoteAgent(asio::io_context& io, EventLoop& loop, RemoteAgentEvents& events,
                         std::uint32_t number, const LocatedHost& host, StarterTask task)
    : loop_(loop),
      events_(events),
      number_(number),
      host_(host),
      starter_(io, std::move(task), static_cast<StarterEvents&>(*this)) {}

RemoteAgent::~RemoteAgent() = default;

std::vector<int> RemoteAgent::living_ranks() const {
  std::vector<int> result = ranks_;
  std::erase_if(result, [this](int rank) { return ended_.contains(rank); });
  return result;
}

void RemoteAgent::start() {
  state_ = State::starting;
  starter_.start();
}

std::string RemoteAgent::awaited() const {
  if (state_ == State::idle) return "its turn has not come";
  return state_ == State::called ? "it has called back" : starter_.state();
}

void RemoteAgent::on_secret(std::string_view secret) { events_.on_secret(*this, secret); }

void RemoteAgent::on_failure(const std::string& text) {
  if (state_ != State::starting) return;
  end_by(State::over);
  events_.on_problem(*this, {exit_failure, text});
}

void RemoteAgent::on_line(const std::string& line) { events_.on_line(*this, line); }

void RemoteAgent::take(meeting::Connection connection, std::chrono::nanoseconds lease) {
  if (state_ != State::starting) return;
  state_ = State::called;
  lease_ = lease;
  peer_ = peer_of(connection.descriptor());
  starter_.came_up();
  link_ = std::make_unique<Link>(loop_, std::move(connection), static_cast<LinkEvents&>(*this),
                                 LinkOptions{.lease = lease, .longest_record = longest_from_agent});
  record::FromLauncher record;
  record.set_lease_ns(static_cast<std::uint64_t>(lease.count()));
  send(record);
}

void RemoteAgent::meet(const record::FromLauncher& meet) {
  state_ = State::meeting;
  send(meet);
}

void RemoteAgent::run(const record::FromLauncher& start) {
  state_ = State::starting_ranks;
  send(start);
}

void RemoteAgent::send(const record::FromLauncher& record) {
  if (link_) link_->send(record);
}

void RemoteAgent::set_reading(bool reading) {
  reading_ = reading;
  if (reading_) give_credit();
}

void RemoteAgent::give_credit() {
  if (owed_ < credit_step) return;
  record::FromLauncher record;
  record.set_credit(std::exchange(owed_, 0));
  send(record);
}

void RemoteAgent::leave() {
  record::FromLauncher record;
  record.mutable_leave();
  send(record);
  end_by(State::over);
}

void RemoteAgent::end_by(State state) {
  state_ = state;
  if (link_) link_->close();
  link_.reset();
  starter_.stop();
}

void RemoteAgent::lose(const std::string& why) {
  const bool was_up = is_up();
  end_by(State::over);
  if (was_up) {
    events_.on_lost(*this, why);
  } else {
    events_.on_problem(*this, {exit_failure, "host " + name() + ": " + why});
  }
}

void RemoteAgent::on_end(const Status& why) {
  if (state_ == State::done) {
    end_by(State::over);
  } else if (why.code() == Code::timeout) {
    lose("nothing has arrived from it for " + format_duration(lease_));
  } else if (why.code() == Code::peer_lost) {
    lose("its agent has ended");
  } else {
    lose(printable(why.message()));
  }
}

void RemoteAgent::on_record(std::string_view bytes) {
  record::FromAgent record;
  const bool is_record = record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (is_record && handle(record)) return;
  lose("its agent has sent something that makes no sense");
}

bool RemoteAgent::handle(const record::FromAgent& record) {
  const bool has_ranks = is_busy() || state_ == State::done;
  switch (record.what_case()) {
    case record::FromAgent::kHello:
      return take_hello(record.hello());
    case record::FromAgent::kMet:
      return take_met(record.met());
    case record::FromAgent::kStarted:
      if (state_ != State::starting_ranks) return false;
      state_ = State::running;
      events_.on_started(*this);
      return true;
    case record::FromAgent::kProblem:
      return take_problem(record.problem());
    case record::FromAgent::kOutput:
      return take_output(record.output());
    case record::FromAgent::kExit:
      return take_exit(record.exit());
    case record::FromAgent::kDone:
      return take_done();
    case record::FromAgent::kTaken:
      if (!has_ranks || ranks_.front() != 0) return false;
      events_.on_taken(record.taken());
      return true;
    case record::FromAgent::kSettled:
      if (!has_ranks) return false;
      events_.on_settled(*this, record.settled());
      return true;
    case record::FromAgent::WHAT_NOT_SET:
      return false;
  }
  return false;
}

bool RemoteAgent::take_hello(const record::Hello& hello) {
  if (state_ != State::called) return false;
  if (hello.version() != version() || hello.build() != build()) {
    end_by(State::over);
    events_.on_problem(
        *this, {exit_failure, "host " + name() + " runs tutti " +
                                  printable(tutti_of(hello.version(), hello.build())) + ", this machine " +
                                  tutti_of(version(), build()) + "; both need the same build"});
    return true;
  }
  if (hello.processors() < 1 || hello.processors() > max_ranks) return false;
  processors_ = static_cast<int>(hello.processors());
  state_ = State::up;
  events_.on_up(*this);
  return true;
}

bool RemoteAgent::take_met(const record::Met& met) {
  const auto is_port = [](std::uint32_t port) { return port > 0 && port <= 65535; };
  if (state_ != State::meeting || !parse_address(met.address(), 0)) return false;
  if (!is_port(met.store_port()) || !is_port(met.master_port())) return false;
  state_ = State::met;
  events_.on_met(*this, met);
  return true;
}

bool RemoteAgent::take_problem(const record::Problem& problem) {
  if (state_ != State::meeting && state_ != State::starting_ranks) return false;
  if (problem.exit_status() < 1 || problem.exit_status() > 255) return false;
  had_problem_ = true;
  events_.on_problem(
      *this, {static_cast<int>(problem.exit_status()), "host " + name() + ": " + printable(problem.text())});
  return true;
}

bool RemoteAgent::take_output(const record::Output& output) {
  const int rank = static_cast<int>(output.rank());
  if (!is_busy() || !std::ranges::binary_search(ranks_, rank)) return false;
  owed_ += output.bytes().size();
  events_.on_output(rank, output.error() ? Stream::err : Stream::out, output.bytes());
  if (reading_) give_credit();
  return true;
}

bool RemoteAgent::take_exit(const record::Exit& exit) {
  const int rank = static_cast<int>(exit.rank());
  if (!is_busy() || !std::ranges::binary_search(ranks_, rank)) return false;
  if (exit.signal() < 0 || exit.signal() > 127 || exit.code() < 0 || exit.code() > 255) return false;
  if (!ended_.insert(rank).second) return false;
  events_.on_exit(*this, {.rank = rank,
                          .pid = static_cast<pid_t>(exit.pid()),
                          .status = {.code = exit.code(), .signal = exit.signal()},
                          .when = std::chrono::steady_clock::now() - time_of(exit.age_ns())});
  return true;
}

bool RemoteAgent::take_done() {
  if (!is_busy() || (!had_problem_ && !living_ranks().empty())) return false;
  state_ = State::done;
  events_.on_done(*this);
  return true;
}

}  // namespace tutti::tools
