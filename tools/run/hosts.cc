#include "tools/run/hosts.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <tools/run/link.pb.h>

#include <tutti/config.h>
#include <tutti/config_values.h>

#include "core/random.h"
#include "core/shown.h"
#include "tools/command_line.h"
#include "tools/run/environment.h"
#include "tools/run/link_limits.h"

namespace tutti::tools {
namespace {

// At most this many start commands run at the same time. More of them would mostly wait for
// processors and descriptors.
constexpr std::ptrdiff_t most_starting = 64;
// The launcher checks this often whether the start commands have ended.
constexpr std::chrono::milliseconds commands_pause(10);

void set_variables(google::protobuf::RepeatedPtrField<record::Variable>& variables,
                   const Environment& environment) {
  for (const auto& [name, value] : environment) {
    record::Variable& variable = *variables.Add();
    variable.set_name(name);
    variable.set_value(value);
  }
}

}  // namespace

Hosts::Hosts(asio::io_context& io, HostsEvents& events, const RunOptions& options, HostPlan plan,
             const SpawnDefaults& defaults)
    : io_(io),
      events_(events),
      options_(options),
      plan_(std::move(plan)),
      defaults_(defaults),
      job_(random_hex(8)),
      commands_(plan_.way, options.prefix),
      loop_(io),
      progress_(
          io, [this] { return progress(); }, [this](const std::string& text) { events_.on_note(text); }),
      exits_(io, [this](const RankExit& exit) { events_.on_exit(exit); }),
      commands_timer_(io) {}

Hosts::~Hosts() = default;

void Hosts::start(const AgentTask& task) {
  task_ = task;
  if (const Status status = listen(); !status.ok()) {
    const bool is_usage = status.code() == Code::invalid_argument;
    return events_.on_start_failure({is_usage ? exit_usage : exit_failure, status.message()});
  }
  const Deadline deadline = Deadline::after(options_.start_timeout);
  for (const LocatedHost& host : plan_.hosts) {
    const auto number = static_cast<std::uint32_t>(agents_.size());
    agents_.push_back(std::make_unique<RemoteAgent>(io_, loop_, static_cast<RemoteAgentEvents&>(*this),
                                                    number, host, starter_task(host, number, deadline)));
  }
  progress_.start();
  start_agents();
}

Status Hosts::listen() {
  const Result<std::vector<SocketAddress>> addresses = call_back_addresses(plan_.hosts, options_.call_back);
  if (!addresses.ok()) return addresses.status();
  const Result<Config> config = Config::from_values(task_.environment);
  if (!config.ok()) return config.status();
  Result<std::unique_ptr<Callback>> callback =
      Callback::open(loop_, *addresses, job_,
                     [this](std::uint32_t host, meeting::Connection connection) {
                       agents_[host]->take(std::move(connection), options_.lease);
                     },
                     {.ports = config->port_range});
  if (!callback.ok()) return callback.status();
  callback_ = *std::move(callback);
  return {};
}

StarterTask Hosts::starter_task(const LocatedHost& host, std::uint32_t number, Deadline deadline) const {
  const std::vector<std::string> start_command = commands_.start(host, job_, number, callback_->endpoints());
  return {.host = host.listed.name,
          .command = start_command,
          .tool = host.is_here ? "tutti" : start_command.front(),
          .agent_path = commands_.path_on(host),
          .tries_again = options_.tries_again && !host.is_here,
          .deadline = deadline,
          .defaults = defaults_,
          .environment = commands_.environment(host)};
}

void Hosts::start_agents() {
  auto starting = std::ranges::count_if(agents_, [](const auto& agent) { return agent->is_starting(); });
  for (const auto& agent : agents_) {
    if (starting >= most_starting || stopping_) return;
    if (agent->is_idle()) {
      ++starting;
      agent->start();
    }
  }
}

Progress::State Hosts::progress() const {
  Progress::State state{.hosts = agents_.size(), .missing = {}};
  for (const auto& agent : agents_) {
    if (!agent->is_up()) state.missing.push_back({agent->name(), agent->awaited()});
  }
  return state;
}

void Hosts::on_secret(RemoteAgent& agent, std::string_view secret) {
  if (!callback_) return;
  const Status status = callback_->expect(agent.number(), secret);
  if (!status.ok()) on_problem(agent, {exit_failure, status.message()});
}

void Hosts::on_up(RemoteAgent&) {
  if (stopping_) return;
  start_agents();
  if (!std::ranges::all_of(agents_, [](const auto& agent) { return agent->is_up(); })) return;
  progress_.stop();
  callback_.reset();
  if (const Status status = assign_ranks(); !status.ok()) {
    return events_.on_start_failure({exit_usage, status.message()});
  }
  if (!stopping_) ask_for_meeting_place();
}

Status Hosts::assign_ranks() {
  if (!plan_.placed) {
    std::vector<int> processors;
    for (const auto& agent : agents_) processors.push_back(agent->processors());
    Result<std::vector<PlacedHost>> placed = place_ranks(plan_.hosts, processors, options_.placement);
    if (!placed.ok()) return placed.status();
    plan_.placed = *std::move(placed);
    events_.on_placed(ranks_on(*plan_.placed));
  }
  task_.world_size = ranks_on(*plan_.placed);
  for (const PlacedHost& host : *plan_.placed) {
    hosting_.push_back(agents_[host.index].get());
    hosting_.back()->assign(host.ranks);
  }
  for (const auto& agent : agents_) {
    if (agent->ranks().empty()) agent->leave();
  }
  return {};
}

void Hosts::ask_for_meeting_place() {
  RemoteAgent& server = *hosting_.front();
  record::FromLauncher record;
  set_variables(*record.mutable_meet()->mutable_variables(), environment_for(server));
  for (const RemoteAgent* agent : hosting_) {
    if (agent == &server) continue;
    // An agent on this machine may have a loopback address, which the other hosts cannot reach.
    std::optional<SocketAddress> address = agent->peer();
    if (agent->host().is_here && server.peer()) address = route_source(*server.peer());
    if (address) record.mutable_meet()->add_peers(address->host());
  }
  if (fits(record)) server.meet(record);
}

// Ranks on this machine get the launcher's whole environment. Ranks on other hosts get their
// agent's environment, in which the variables that the launcher passes on replace the agent's
// values.
Environment Hosts::environment_for(const RemoteAgent& agent) const {
  if (agent.host().is_here) return task_.environment;
  return passed_on(task_.environment, options_.exports);
}

void Hosts::on_met(RemoteAgent& agent, const record::Met& met) {
  if (!met.doubt().empty()) events_.on_note("host " + agent.name() + ": " + printable(met.doubt()));
  JobPlace place;
  place.id = job_;
  place.store = format_endpoint(met.address(), static_cast<std::uint16_t>(met.store_port()));
  place.master_address = met.address();
  place.master_port = static_cast<int>(met.master_port());
  std::vector<record::FromLauncher> records(hosting_.size());
  for (std::size_t node = 0; node < hosting_.size(); ++node) {
    Environment environment = environment_for(*hosting_[node]);
    set_job_variables(environment, place);
    record::Start& start = *records[node].mutable_start();
    set_variables(*start.mutable_variables(), environment);
    fill(start, *hosting_[node]);
    if (!fits(records[node])) return;
  }
  ranks_may_run_ = true;
  for (std::size_t node = 0; node < hosting_.size(); ++node) hosting_[node]->run(records[node]);
}

// Returns whether the record is short enough for an agent. Reports the problem if it is too long.
bool Hosts::fits(const record::FromLauncher& record) {
  if (record.ByteSizeLong() <= longest_from_launcher) return true;
  events_.on_start_failure({exit_cannot_execute, "the program's arguments and variables have more than " +
                                                     format_size(longest_from_launcher) +
                                                     " bytes, which is the most that other hosts take"});
  return false;
}

// Fills in all members that do not depend on the meeting place.
void Hosts::fill(record::Start& start, const RemoteAgent& agent) const {
  for (const std::string& word : task_.program) start.add_program(word);
  start.set_folder(folder_of(options_));
  for (const int rank : agent.ranks()) start.add_ranks(static_cast<std::uint32_t>(rank));
  start.set_world_size(static_cast<std::uint32_t>(task_.world_size));
  start.set_binding(static_cast<std::uint32_t>(options_.binding));
  start.set_merge_stderr(task_.merge_stderr);
  start.set_input(&agent == hosting_.front());
  start.set_mpi_variables(options_.mpi_env);
  if (!agent.host().is_here) start.set_prefix(options_.prefix);
  start.set_kill_grace_ns(static_cast<std::uint64_t>(task_.kill_grace.count()));
  start.set_output_credit(output_credit);
}

void Hosts::on_started(RemoteAgent& agent) {
  if (&agent != hosting_.front()) return;
  input_.emplace(io_, task_.input, input_credit, [this](std::string_view bytes) {
    record::FromLauncher record;
    record.mutable_input()->set_bytes(std::string(bytes));
    record.mutable_input()->set_end(bytes.empty());
    hosting_.front()->send(record);
  });
}

void Hosts::on_taken(std::uint64_t bytes) {
  if (input_) input_->give(bytes);
}

// Only the first problem is reported, since the end of the job causes further problems.
void Hosts::on_problem(RemoteAgent&, const StartFailure& failure) {
  if (stopping_) return finish_if_over();
  events_.on_start_failure(failure);
}

void Hosts::on_output(int rank, Stream stream, std::string_view bytes) {
  events_.on_output(rank, stream, bytes);
}

void Hosts::on_exit(RemoteAgent& agent, const RankExit& exit) {
  std::vector<RemoteAgent*> others;
  for (RemoteAgent* other : hosting_) {
    if (other != &agent && other->is_busy() && !stopping_) others.push_back(other);
  }
  exits_.add(exit, others);
}

void Hosts::on_settled(RemoteAgent& agent, std::uint64_t number) { exits_.settled(agent, number); }

void Hosts::on_done(RemoteAgent& agent) {
  exits_.forget(agent);
  finish_if_over();
}

// The loss of a host is reported before the exits that are held back, since it may be their cause.
void Hosts::on_lost(RemoteAgent& agent, const std::string& why) {
  visits_.push_back(std::make_unique<Visit>(commands_.end(agent.host(), job_),
                                            commands_.environment(agent.host()), defaults_));
  if (ranks_may_run_) {
    events_.on_lost(agent.name(), agent.living_ranks(), why);
  } else if (!stopping_) {
    events_.on_start_failure({exit_failure, "host " + agent.name() + " is lost: " + why});
  }
  exits_.forget(agent);
  finish_if_over();
}

void Hosts::on_line(RemoteAgent& agent, const std::string& line) {
  events_.on_note("host " + agent.name() + ": " + printable(line));
}

void Hosts::signal(int number) {
  record::FromLauncher record;
  record.set_signal(number);
  send_to_ranks(record);
}

void Hosts::stop(int number) {
  if (std::exchange(stopping_, true)) return;
  record::FromLauncher record;
  record.set_stop(number);
  send_to_ranks(record);
  finish_if_over();
}

void Hosts::kill() {
  stopping_ = true;
  record::FromLauncher record;
  record.mutable_kill();
  send_to_ranks(record);
  finish_if_over();
}

void Hosts::send_to_ranks(const record::FromLauncher& record) {
  for (RemoteAgent* agent : hosting_) {
    if (agent->is_busy()) agent->send(record);
  }
}

void Hosts::set_reading(bool reading) {
  for (RemoteAgent* agent : hosting_) agent->set_reading(reading);
}

std::string Hosts::host_of(int rank) const {
  const auto host = std::ranges::find_if(
      hosting_, [rank](const RemoteAgent* agent) { return std::ranges::count(agent->ranks(), rank) != 0; });
  return host == hosting_.end() ? "" : (*host)->name();
}

// Releases all agents after the last process of the job has ended on all reachable hosts. If no
// ranks were started, the agents are released as soon as the job has to end.
void Hosts::finish_if_over() {
  if (done_) return;
  const bool over = std::ranges::all_of(hosting_, [](const RemoteAgent* agent) { return agent->is_over(); });
  if (ranks_may_run_ ? !over : !stopping_) return;
  done_ = true;
  progress_.stop();
  callback_.reset();
  input_.reset();
  for (const auto& agent : agents_) agent->leave();
  await_commands();
}

// Waits until all commands that this process has started have ended.
void Hosts::await_commands() {
  const bool running =
      std::ranges::any_of(agents_, [](const auto& agent) { return agent->start_command_runs(); }) ||
      !std::ranges::all_of(visits_, [](const auto& visit) { return visit->is_over(); });
  commands_timer_.expires_after(running ? commands_pause : std::chrono::milliseconds(0));
  commands_timer_.async_wait([this, running](const asio::error_code& error) {
    if (error) return;
    if (running) return await_commands();
    events_.on_done();
  });
}

}  // namespace tutti::tools
