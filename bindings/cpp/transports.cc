#include "bindings/cpp/transports.h"

#include <array>
#include <bit>
#include <utility>

#include <tutti/log.h>

#include "bindings/cpp/mpi_process.h"
#include "bindings/cpp/offloads.h"
#include "rendezvous/launch/environment.h"
#include "rendezvous/launch/interfaces.h"
#include "transport/mpi/factory.h"
#include "transport/shm/factory.h"
#include "transport/tcp/factory.h"
#include "transport/verbs/factory.h"

namespace tutti {

namespace {

// Sets where a transport listens over TCP.
Status set_places(meeting::ListenPlaces& places, const TransportSetup& setup) {
  Result<std::vector<std::string>> addresses = listen_addresses(setup);
  if (!addresses.ok()) return addresses.status();
  places.bind = std::move(addresses).take();
  if (!setup.config.advertise_address.empty()) places.advertise = {setup.config.advertise_address};
  if (setup.config.port_range) {
    places.first_port = setup.config.port_range->first;
    places.last_port = setup.config.port_range->last;
  }
  return {};
}

Result<std::unique_ptr<Transport>> create_tcp(const TransportSetup& setup) {
  tcp::Options options;
  if (const Status set = set_places(options, setup); !set.ok()) return set;
  options.socket_buffer = static_cast<int>(setup.config.tcp_socket_buffer);
  options.sockets = static_cast<int>(setup.config.tcp_sockets);
  options.congestion = setup.config.tcp_congestion;
  options.limits = limits_of(setup.config);
  options.credentials = setup.credentials;
  return tcp::create(options);
}

Result<std::unique_ptr<Transport>> create_shm(const TransportSetup& setup) {
  shm::Options options;
  options.ring = std::bit_ceil(setup.config.shm_ring);
  options.limits = limits_of(setup.config);
  options.credentials = setup.credentials;
  return shm::create(options);
}

Result<std::unique_ptr<Transport>> create_verbs(const TransportSetup& setup) {
  verbs::Options options;
  if (const Status set = set_places(options, setup); !set.ok()) return set;
  options.encrypted = setup.config.tls;
  options.settings = verbs::settings_from(setup.config);
  options.limits = limits_of(setup.config);
  options.credentials = setup.credentials;
  return verbs::create(options);
}

Status not_encrypted() {
  return Status(Code::unsupported, "TUTTI_TLS is set, but messages through MPI would not be encrypted");
}

// The processes have joined an MPI world before, in `init` (`MpiProcess`), since that needs all of them.
Result<std::unique_ptr<Transport>> create_mpi(const TransportSetup& setup) {
  if (setup.config.tls) return not_encrypted();
  const Result<mpi::Messenger*> messenger = MpiProcess::instance().messenger();
  if (!messenger.ok()) return messenger.status();
  mpi::Options options;
  options.messenger = *messenger;
  options.limits = limits_of(setup.config);
  return mpi::create(options);
}

Result<std::string> mpi_facts(const Config& config) {
  if (config.tls) return not_encrypted();
  const auto launcher = mpi::launcher_of(environment_of_process());
  const auto library = mpi::Library::open(mpi::library_names(config.mpi_library, launcher));
  if (!library.ok()) return library.status();
  return (*library)->describe();
}

Status mpi_left_out(const Config&) { return Status(Code::unsupported, "TUTTI_TRANSPORTS does not name it"); }

Status verbs_left_out(const Config& config) {
  if (!verbs::is_switched_off(config)) return {};
  return Status(Code::unsupported,
                "NCCL_IB_DISABLE is 1, TUTTI_IB_HCA is not set, and TUTTI_TRANSPORTS does not name it");
}

constexpr std::array entries = {
    TransportEntry{"shm", "shared memory on one host", create_shm},
    TransportEntry{"verbs", "InfiniBand and RoCE", create_verbs, verbs_left_out},
    TransportEntry{"tcp", "TCP sockets", create_tcp},
    TransportEntry{"mpi", "messages of MPI", create_mpi, mpi_left_out, mpi_facts},
};

const TransportEntry* find(std::string_view name) {
  for (const TransportEntry& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Status unknown(const std::string& name) {
  std::string known;
  for (const TransportEntry& entry : entries) known += std::string(entry.name) + ", ";
  for (const OffloadEntry& entry : offload_entries()) {
    if (entry.is_chosen) known += std::string(entry.name) + ", ";
  }
  return Status(Code::invalid_argument,
                "no transport \"" + name + "\"; there are: " + known + "or auto alone, for all that can run");
}

// Makes all transports that can run here, the fastest first.
Result<std::vector<std::unique_ptr<Transport>>> make_all_transports(const TransportSetup& setup) {
  std::vector<std::unique_ptr<Transport>> transports;
  Status last(Code::unreachable, "no transport can run here");
  for (const TransportEntry& entry : entries) {
    const Status left_out = entry.left_out == nullptr ? Status() : entry.left_out(setup.config);
    Result<std::unique_ptr<Transport>> made = left_out.ok() ? entry.create(setup) : left_out;
    if (made.ok()) {
      transports.push_back(std::move(made).take());
    } else {
      last = made.status().with_context("transport " + std::string(entry.name));
      log::info("a transport is left out: ", last);
    }
  }
  if (transports.empty()) return last;
  return transports;
}

}  // namespace

Result<std::vector<std::string>> listen_addresses(const TransportSetup& setup) {
  if (!setup.config.bind_address.empty()) return std::vector<std::string>{setup.config.bind_address};
  Result<std::vector<Interface>> all = list_interfaces();
  if (!all.ok()) return all.status();
  const InterfaceFilter filter = interface_filter(setup.config.socket_ifname);
  Result<std::vector<Interface>> chosen = select_interfaces(*all, filter, setup.route);
  if (!chosen.ok()) return chosen.status();
  std::vector<std::string> addresses;
  for (const Interface& candidate : *chosen) {
    if (!candidate.addresses.empty()) addresses.push_back(candidate.addresses.front().host());
  }
  if (addresses.empty()) return Status(Code::unreachable, "no network interface has an address");
  return addresses;
}

MessageLimits limits_of(const Config& config) {
  return {.eager = static_cast<std::uint32_t>(config.eager_limit),
          .credit = static_cast<std::uint32_t>(config.eager_credit),
          .fragment = static_cast<std::uint32_t>(config.fragment)};
}

Result<std::string> facts_of(const TransportEntry& entry, const TransportSetup& setup) {
  if (entry.facts != nullptr) return entry.facts(setup.config);
  const Result<std::unique_ptr<Transport>> made = entry.create(setup);
  if (!made.ok()) return made.status();
  return (*made)->facts();
}

std::span<const TransportEntry> transport_entries() { return entries; }

Result<std::vector<std::unique_ptr<Transport>>> make_transports(const std::vector<std::string>& names,
                                                                const TransportSetup& setup) {
  if (names.empty() || names == std::vector<std::string>{"auto"}) return make_all_transports(setup);
  const Result<std::vector<std::string>> between_processes = without_offloads(names);
  if (!between_processes.ok()) return between_processes.status();
  std::vector<std::unique_ptr<Transport>> transports;
  for (const std::string& name : *between_processes) {
    const TransportEntry* entry = find(name);
    if (entry == nullptr) return unknown(name);
    Result<std::unique_ptr<Transport>> made = entry->create(setup);
    if (!made.ok()) return made.status().with_context("transport " + name);
    transports.push_back(std::move(made).take());
  }
  return transports;
}

}  // namespace tutti
