#include <chrono>
#include <iostream>

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <tutti/config.h>
#include <tutti/version.h>

#include "bindings/cpp/offloads.h"
#include "bindings/cpp/transports.h"
#include "core/reduce.h"
#include "core/shown.h"
#include "rendezvous/launch/environment.h"
#include "rendezvous/launch/interfaces.h"
#include "tools/command_line.h"
#include "transport/mpi/library.h"
#include "transport/mpi/search.h"

namespace tutti::tools {
namespace {

// The variables of launchers and schedulers begin with these prefixes. The last two entries are variables of
// NCCL and Gloo, which tutti reads, too.
constexpr std::string_view launcher_prefixes[] = {"RANK",
                                                  "WORLD_SIZE",
                                                  "LOCAL_RANK",
                                                  "LOCAL_WORLD_SIZE",
                                                  "MASTER_ADDR",
                                                  "MASTER_PORT",
                                                  "OMPI_COMM",
                                                  "PMI_",
                                                  "PMIX_",
                                                  "SLURM_",
                                                  "JOB_COMPLETION_INDEX",
                                                  "NODES_IPS",
                                                  "NODE_PORT",
                                                  "NODES_NUM",
                                                  "NCCL_SOCKET_IFNAME",
                                                  "GLOO_SOCKET_IFNAME"};

void print_machine() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  utsname system = {};
  uname(&system);
  cpu_set_t cores;
  const bool known = sched_getaffinity(0, sizeof cores, &cores) == 0;
  std::cout << "tutti " << version() << " (build " << build() << ")\n"
            << "reduce kernels: " << reduce_isa() << "\n"
            << "host: " << printable(host) << ", " << system.sysname << " " << system.release << " "
            << system.machine << ", " << (known ? CPU_COUNT(&cores) : 0) << " usable cores\n";
}

void print_transports(const Config& config, const std::optional<SocketAddress>& route) {
  std::cout << "\ntransports, in order of preference:\n";
  for (const TransportEntry& entry : transport_entries()) {
    const Result<std::string> facts = facts_of(entry, {.config = config, .route = route});
    std::cout << "  " << entry.name << " (" << entry.meaning << "): ";
    if (facts.ok()) {
      std::cout << "can run" << (facts->empty() ? "" : ", with " + printable(*facts)) << "\n";
      const Status left_out = entry.left_out == nullptr ? Status() : entry.left_out(config);
      if (!left_out.ok() && config.transports.empty())
        std::cout << "    not used: " << left_out.message() << "\n";
    } else {
      std::cout << "cannot run: " << printable(facts.status().message()) << "\n";
    }
  }
}

void print_offloads(const Config& config) {
  std::cout << "\nlibraries for collectives on CUDA devices, in order of preference:\n";
  for (const OffloadEntry& entry : offload_entries()) {
    const auto made = entry.create(config);
    std::cout << "  " << entry.name << " (" << entry.meaning << "): ";
    if (made.ok()) {
      std::cout << "found " << (*made)->facts() << "\n";
    } else {
      std::cout << "not found: " << printable(made.status().message()) << "\n";
    }
  }
}

void print_mpi(const Config& config) {
  const auto launcher = mpi::launcher_of(environment_of_process());
  const auto library = mpi::Library::open(mpi::library_names(config.mpi_library, launcher));
  std::cout << "\nMPI, through which ranks can meet (mpi://):\n";
  if (launcher) std::cout << "  launcher: " << printable(launcher->description) << "\n";
  if (library.ok()) {
    std::cout << "  found " << printable((*library)->describe()) << "\n";
  } else {
    std::cout << "  not found: " << printable(library.status().message()) << "\n";
  }
}

// Returns the local address from which packets to the ranks' meeting place would leave, if that is known.
std::optional<SocketAddress> find_route(const Result<Launch>& launch) {
  if (!launch.ok() || launch->store.kind != StoreLocation::Kind::tcp) return std::nullopt;
  const auto addresses =
      resolve(launch->store.host, launch->store.port, Deadline::after(std::chrono::seconds(2)));
  if (!addresses.ok() || addresses->empty()) return std::nullopt;
  return route_source(addresses->front());
}

void print_interfaces(const Config& config, const std::optional<SocketAddress>& route) {
  std::cout << "\ninterfaces:\n";
  const auto all = list_interfaces();
  if (!all.ok()) {
    std::cout << "  cannot be listed: " << all.status().message() << "\n";
    return;
  }
  for (const Interface& interface : *all) {
    std::cout << "  " << interface.name << ":";
    for (const SocketAddress& address : interface.addresses) std::cout << " " << address.host();
    std::cout << (interface.loopback ? " (loopback)\n" : "\n");
  }
  const InterfaceFilter filter = interface_filter(config.socket_ifname);
  const auto chosen = select_interfaces(*all, filter, route);
  if (!chosen.ok()) {
    std::cout << "  none would be used: " << chosen.status().message() << "\n";
    return;
  }
  std::cout << "  would be used:";
  for (const Interface& interface : *chosen) std::cout << " " << interface.name;
  if (!filter.text.empty()) {
    std::cout << ", by " << filter.variable << "=" << shown(filter.variable, filter.text);
  } else if (route) {
    std::cout << ", because of the route to where the ranks meet";
  }
  std::cout << "\n";
}

// Returns whether to show a variable with its value. The value of an unknown TUTTI_* variable may
// be a secret, so only a warning names such a variable.
bool concerns_us(const std::string& name) {
  for (const Config::Variable& variable : Config::variables()) {
    if (variable.name == name) return true;
  }
  for (const std::string_view prefix : launcher_prefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

void print_environment(const Config& config, const Result<Launch>& launch) {
  std::cout << "\nenvironment:\n";
  for (const auto& [name, value] : environment_of_process()) {
    if (!concerns_us(name)) continue;
    std::cout << "  " << name << "=" << shown(name, value) << "\n";
  }
  for (const std::string& warning : config.warnings()) std::cout << "  warning: " << warning << "\n";
  if (!launch.ok()) {
    std::cout << "  no launch: " << launch.status().message() << "\n";
  } else if (launch->store.kind == StoreLocation::Kind::none) {
    std::cout << "  no launcher: `init` would give a world of one rank\n";
  } else {
    std::cout << "  rank " << launch->rank << " of " << launch->world_size << " by " << launch->source
              << ", meeting at " << to_string(launch->store) << "\n";
  }
}

}  // namespace

int info_command(const Arguments& arguments) {
  CLI::App app(
      "Shows the version, the transports (and why one cannot run here), the network interfaces, and the\n"
      "launch that the environment describes.",
      "tutti info");
  bool variables = false;
  bool markdown = false;
  app.add_flag("--env", variables,
               "Show every TUTTI_* variable: its value, where it was set, its type and meaning");
  app.add_flag("--markdown", markdown, "With --env: as a Markdown table, with defaults");
  if (const auto status = parse(app, arguments)) return *status;
  if (markdown && !variables) return usage_error(app, "--markdown needs --env");
  if (markdown) {
    std::cout << variables_markdown();
    return 0;
  }
  const auto config = Config::from_environment();
  if (!config.ok()) {
    std::cerr << "tutti info: " << config.status().message() << "\n";
    return exit_failure;
  }
  if (variables) {
    std::cout << describe(*config);
    return 0;
  }
  const auto launch = discover();
  const auto route = find_route(launch);
  print_machine();
  print_transports(*config, route);
  print_offloads(*config);
  print_mpi(*config);
  print_interfaces(*config, route);
  print_environment(*config, launch);
  return 0;
}

}  // namespace tutti::tools
