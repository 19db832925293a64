// Fuzzes the variables of launchers (ranks, ports, lists of hosts and nodes), one NAME=VALUE per line.
#include "rendezvous/launch/environment.h"

#include "rendezvous/launch/slurm.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti;
  fuzz::Input input(data, size);
  Environment environment;
  while (!input.empty()) {
    const std::string line(input.line());
    const std::size_t equals = line.find('=');
    if (equals != line.npos) environment[line.substr(0, equals)] = line.substr(equals + 1);
  }
  for (const auto& [name, value] : environment) {
    for (const std::string& host : expand_slurm_hosts(value)) {
      fuzz::require(!host.empty() && host.size() <= value.size());
    }
    for (const int count : expand_slurm_counts(value)) fuzz::require(count >= 0);
    static_cast<void>(slurm_port(value, name));
  }
  const auto launch = discover({}, environment, {"10.0.0.1", "fe80::1"});
  if (!launch.ok()) {
    fuzz::require(launch.status().code() == Code::invalid_argument);
    return 0;
  }
  fuzz::require(launch->rank >= 0 && launch->rank < launch->world_size);
  fuzz::require(launch->world_size == 1 || launch->store.kind != StoreLocation::Kind::none);
  static_cast<void>(to_string(launch->store));
  return 0;
}
