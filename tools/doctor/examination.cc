#include "tools/doctor/examination.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <utility>

#include <signal.h>
#include <sys/resource.h>

#include <tutti/address.h>
#include <tutti/config.h>

#include "core/random.h"
#include "core/shown.h"
#include "tools/doctor/test_socket.h"
#include "tools/run/environment.h"
#include "tools/run/guard.h"
#include "tools/run/meeting_place.h"
#include "tools/run/spawn.h"

namespace tutti::tools::doctor {
namespace {

using SystemClock = std::chrono::system_clock;

constexpr std::size_t most_at_once = 64;
constexpr int looks_at_clock = 3;

double seconds_of(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

Environment environment_of_job(const RunOptions& options) {
  Environment environment = environment_of_process();
  apply_exports(environment, options.exports);
  provide_token(environment);
  return environment;
}

// Returns how many hosts may start at the same time. This machine listens on one port for each of
// them, and the probe on this machine needs ports, too.
std::size_t hosts_at_once(const Environment& environment) {
  const Result<Config> config = Config::from_values(environment);
  if (!config.ok() || !config->port_range) return most_at_once;
  const std::size_t ports = std::size_t{1} + config->port_range->last - config->port_range->first;
  return std::clamp<std::size_t>(ports / 2, 1, most_at_once);
}

// Raises the limit on open files, since each host needs about ten descriptors in this process.
void allow_many_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Progress::State progress_of(const Examined& examined) {
  Progress::State state{.hosts = examined.hosts.size(), .missing = {}};
  for (const ExaminedHost& host : examined.hosts) {
    if (!host.facts) state.missing.push_back({host.name, host.problem.empty() ? "no answer yet" : "failed"});
  }
  return state;
}

}  // namespace

Examination::Examination(const RunOptions& options, std::vector<LocatedHost> hosts, const StartCommand& way)
    : options_(options),
      located_(std::move(hosts)),
      environment_(environment_of_job(options)),
      pass_(random_hex(pass_bytes / 2)),
      signals_(io_),
      progress_(
          io_, [this] { return progress_of(examined_); },
          [](const std::string& text) { std::cerr << "tutti doctor: " << text << std::endl; }),
      most_beginning_(hosts_at_once(environment_)) {
  const SpawnDefaults defaults = SpawnDefaults::of_this_process();
  for (const LocatedHost& host : located_) {
    examined_.hosts.push_back({.name = host.listed.name});
    probes_.push_back(std::make_unique<RemoteProbe>(io_, options_, host, way, defaults));
  }
}

Examination::~Examination() = default;

std::optional<Examined> Examination::run() {
  for (const int number : signals_to_handle()) signals_.add(number);
  await_signals();
  ::signal(SIGPIPE, SIG_IGN);
  allow_many_descriptors();
  progress_.start();
  begin_more();
  io_.run();
  if (signal_ != 0) return std::nullopt;
  return std::move(examined_);
}

void Examination::await_signals() {
  signals_.async_wait([this](const asio::error_code& error, int number) {
    if (error) return;
    await_signals();
    const bool ends_job = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
    if (!ends_job) return;
    signal_ = number;  // the remaining steps are quick, since they have no hosts left to examine
    for (std::size_t host = 0; host < begun_; ++host) probes_[host]->kill();
  });
}

void Examination::ask_all(const std::vector<Request>& requests, const OnAnswer& on_answer,
                          const std::function<void()>& then) {
  if (requests.empty()) return then();
  const auto left = std::make_shared<std::size_t>(requests.size());
  for (const auto& [host, command] : requests) {
    probes_[host]->ask(command, [this, host = host, left, on_answer, then](const ProbeAnswer* answer) {
      if (answer != nullptr) on_answer(host, *answer);
      examined_.hosts[host].problem = probes_[host]->problem();
      if (--*left == 0) then();
    });
  }
}

std::vector<std::size_t> Examination::hosts_up() const {
  std::vector<std::size_t> up;
  for (std::size_t host = 0; host < examined_.hosts.size(); ++host) {
    if (examined_.hosts[host].facts && examined_.hosts[host].problem.empty()) up.push_back(host);
  }
  return up;
}

void Examination::begin_more() {
  while (beginning_ < most_beginning_ && begun_ < probes_.size() && signal_ == 0) begin(begun_++);
  if (beginning_ > 0) return;
  progress_.stop();
  look_at_clocks(looks_at_clock);
}

void Examination::begin(std::size_t host) {
  ++beginning_;
  ProbeCommand command{.what = "begin",
                       .host = static_cast<std::uint32_t>(host),
                       .pass = pass_,
                       .folder = folder_of(options_)};
  const auto addresses = call_back_addresses({&located_[host], 1}, options_.call_back);
  if (addresses.ok()) {
    for (const SocketAddress& address : *addresses) command.addresses.push_back(address.host());
  }
  probes_[host]->start(environment_);
  const auto take_facts = [this](std::size_t from, const ProbeAnswer& answer) {
    examined_.hosts[from].facts = answer.facts;
  };
  ask_all({{host, std::move(command)}}, take_facts, [this] {
    --beginning_;
    begin_more();
  });
}

void Examination::look_at_clocks(int times) {
  if (times == 0) return look_for_meeting();
  std::vector<Request> requests;
  for (const std::size_t host : hosts_up()) requests.push_back({host, {.what = "clock"}});
  const SystemClock::time_point asked = SystemClock::now();
  const auto take_time = [this, asked](std::size_t host, const ProbeAnswer& answer) {
    const auto half = (SystemClock::now() - asked) / 2;
    const std::chrono::nanoseconds ours = (asked + half).time_since_epoch();
    const ClockOffset found{.ahead = seconds_of(std::chrono::nanoseconds(answer.clock_ns)) - seconds_of(ours),
                            .uncertainty = seconds_of(half)};
    std::optional<ClockOffset>& best = examined_.hosts[host].clock;
    if (!best || found.uncertainty < best->uncertainty) best = found;
  };
  ask_all(requests, take_time, [this, times] { look_at_clocks(times - 1); });
}

// Returns the addresses that a job's launcher would send to the agent on the host of rank 0.
std::vector<std::string> Examination::peers_of(std::size_t host) const {
  std::vector<std::string> peers;
  for (const std::size_t other : hosts_up()) {
    if (other == host) continue;
    std::string address = examined_.hosts[other].facts->route;
    const auto target = parse_address(examined_.hosts[host].facts->route, 0);
    if (located_[other].is_here && target) {
      if (const auto source = route_source(*target)) address = source->host();
    }
    if (!address.empty()) peers.push_back(address);
  }
  return peers;
}

void Examination::look_for_meeting() {
  const std::vector<std::size_t> up = hosts_up();
  if (up.empty()) return finish();
  const std::vector<std::string> peers = peers_of(up.front());
  const auto meeting = std::make_shared<std::string>();
  const auto take_routes = [this, peers, meeting](std::size_t host, const ProbeAnswer& answer) {
    const auto found = meeting_of(*examined_.hosts[host].facts, peers, answer.routes);
    if (!found.ok()) return;  // `look_for_usage` reports the reason as a problem of the first host
    *meeting = found->address;
    examined_.doubt = printable(found->doubt);
  };
  ask_all({{up.front(), {.what = "routes", .addresses = peers}}}, take_routes,
          [this, meeting] { look_for_usage(*meeting); });
}

void Examination::look_for_usage(const std::string& meeting) {
  std::vector<Request> requests;
  for (const std::size_t host : hosts_up()) {
    requests.push_back({host, {.what = "routes", .addresses = {meeting}}});
  }
  const auto take_route = [this](std::size_t host, const ProbeAnswer& answer) {
    ExaminedHost& examined = examined_.hosts[host];
    examined.usage = usage_of(*examined.facts, answer.routes.empty() ? "" : answer.routes.front());
  };
  ask_all(requests, take_route, [this] {
    const std::vector<std::size_t> up = hosts_up();
    for (const Round& planned : plan_rounds(up.size())) {
      Round there, back;
      for (const auto& [one, other] : planned) {
        there.emplace_back(up[one], up[other]);
        back.emplace_back(up[other], up[one]);
      }
      card_rounds_.push_back(there);
      rounds_.push_back(std::move(there));
      rounds_.push_back(std::move(back));
    }
    examined_.all_pairs = up.size() <= most_rounds + 1;
    test_next_round();
  });
}

std::vector<Examination::Request> Examination::tests_of(const Round& round) const {
  std::vector<Resident> residents(examined_.hosts.size(), Resident{nullptr, nullptr});
  for (const std::size_t host : hosts_up()) {
    residents[host] = {&*examined_.hosts[host].facts, &examined_.hosts[host].usage};
  }
  std::vector<Request> requests;
  for (const auto& [from, to] : round) {
    if (residents[from].facts == nullptr || residents[to].facts == nullptr) continue;
    requests.push_back({from, {.what = "test", .targets = targets_of(residents, from, to)}});
  }
  return requests;
}

void Examination::test_next_round() {
  if (rounds_.empty()) return test_cards_of_next_round();
  const Round round = std::move(rounds_.front());
  rounds_.pop_front();
  const auto take_paths = [this, round](std::size_t from, const ProbeAnswer& answer) {
    const auto pair = std::ranges::find(round, from, &Pair::first);
    examined_.connections.push_back({.from = from, .to = pair->second, .paths = answer.paths});
  };
  ask_all(tests_of(round), take_paths, [this] { test_next_round(); });
}

void Examination::finish() {
  for (std::size_t host = 0; host < begun_; ++host) {
    probes_[host]->finish([this] {
      if (++ended_ == begun_) io_.stop();
    });
  }
}

}  // namespace tutti::tools::doctor
