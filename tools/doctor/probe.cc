#include "tools/doctor/probe.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <system_error>

#include <signal.h>

#include <tutti/address.h>

#include "rendezvous/launch/interfaces.h"
#include "tools/doctor/card_tester.h"
#include "tools/doctor/path_tester.h"
#include "tools/doctor/test_socket.h"
#include "tools/run/environment.h"

namespace tutti::tools::doctor {
namespace {

ProbeAnswer problem(const std::string& text) {
  ProbeAnswer answer;
  answer.problem = text;
  return answer;
}

// Returns the local address from which packets to a literal address leave. The result is empty if
// there is no route.
std::string route_to(const std::string& address) {
  const std::optional<SocketAddress> target = parse_address(address, 0);
  const auto source = target ? route_source(*target) : std::nullopt;
  return source ? source->host() : "";
}

ProbeAnswer tell_clock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  ProbeAnswer answer;
  answer.clock_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return answer;
}

ProbeAnswer tell_port(const std::string& address) {
  const Result<Config> config = Config::from_environment();
  if (!config.ok()) return problem(config.status().message());
  const Result<std::uint16_t> port = free_port(address, *config);
  ProbeAnswer answer;
  if (port.ok()) {
    answer.port = *port;
  } else {
    answer.failure = port.status().message();
  }
  return answer;
}

// The agent has started this process as the only rank of a job. The variables of this rank would contradict
// the jobs by which the probe tests RDMA devices.
void forget_own_rank() {
  Environment of_rank;
  set_job_variables(of_rank, {});
  set_rank_variables(of_rank, {});
  for (const auto& [name, value] : of_rank) unsetenv(name.c_str());
}

}  // namespace

void Probe::serve(std::istream& in, std::ostream& out) {
  for (std::string line; std::getline(in, line);) {
    const Result<ProbeCommand> command = parse_command(line);
    const ProbeAnswer answer = command.ok() ? carry_out(*command) : problem(command.status().message());
    out << to_line(answer) << std::endl;
  }
}

ProbeAnswer Probe::carry_out(const ProbeCommand& command) {
  if (command.what == "begin" && !responder_) return begin(command);
  if (command.what == "clock") return tell_clock();
  if (command.what == "routes") {
    ProbeAnswer answer;
    for (const std::string& address : command.addresses) answer.routes.push_back(route_to(address));
    return answer;
  }
  if (command.what == "test" && responder_) {
    ProbeAnswer answer;
    answer.paths = test_paths(command.targets, pass_);
    return answer;
  }
  if (command.what == "cards" && responder_) {
    ProbeAnswer answer;
    answer.failure = test_cards(command.cards);
    return answer;
  }
  if (command.what == "port" && command.addresses.size() == 1) return tell_port(command.addresses.front());
  return problem("no such command: " + command.what);
}

ProbeAnswer Probe::begin(const ProbeCommand& command) {
  if (command.pass.size() != pass_bytes) return problem("the pass of the run has a wrong length");
  const Result<Config> config = Config::from_environment();
  if (!config.ok()) return problem(config.status().message());
  pass_ = command.pass;
  responder_ = std::make_unique<Responder>(command.host, pass_);

  ProbeAnswer answer;
  answer.facts = look_at_host();
  const InterfaceFilter filter = interface_filter(config->socket_ifname);
  answer.facts.filter = filter.text;
  answer.facts.filter_variable = filter.variable;
  if (config->port_range) answer.facts.port_range = format_port_range(*config->port_range);
  for (const std::string& address : command.addresses) {
    if (answer.facts.route.empty()) answer.facts.route = route_to(address);
  }
  const Result<std::string> cards = cards_in_use(*config);
  (cards.ok() ? answer.facts.cards : answer.facts.no_cards) = cards.ok() ? *cards : cards.status().message();
  std::error_code ignored;
  answer.facts.has_folder = std::filesystem::is_directory(command.folder, ignored);
  listen(answer.facts, *config);
  responder_->start();
  return answer;
}

// Listens on all addresses except loopback and link-local ones.
void Probe::listen(HostFacts& facts, const Config& config) {
  for (InterfaceFacts& interface : facts.interfaces) {
    if (interface.loopback) continue;
    for (AddressFacts& address : interface.addresses) {
      const bool is_link_local = address.address.find('%') != std::string::npos;
      if (is_link_local) continue;
      const Result<std::uint16_t> port = responder_->listen(address.address, config.port_range);
      if (port.ok()) {
        address.port = *port;
      } else {
        facts.listen_problem = port.status().message();
      }
    }
  }
}

int run_probe() {
  signal(SIGPIPE, SIG_IGN);
  forget_own_rank();
  std::ios::sync_with_stdio(false);
  Probe().serve(std::cin, std::cout);
  return 0;
}

}  // namespace tutti::tools::doctor
