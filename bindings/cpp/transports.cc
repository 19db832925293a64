#include <tutti/bindings/cpp/transports.h>

#include <array>
#include <utility>

#include <tutti/core/log.h>
#include <tutti/rendezvous/interfaces.h>
#include <tutti/transport/tcp/factory.h>

namespace tutti {

namespace {

// The address that peers are to connect to: what the user says, else the first of the chosen interface.
Result<std::string> listen_address(const TransportSetup& setup) {
  if (!setup.config.bind_address.empty()) return setup.config.bind_address;
  Result<std::vector<Interface>> all = list_interfaces();
  if (!all.ok()) return all.status();
  const InterfaceFilter filter = interface_filter(setup.config.socket_ifname);
  Result<std::vector<Interface>> chosen = select_interfaces(*all, filter, setup.route);
  if (!chosen.ok()) return chosen.status();
  for (const Interface& candidate : *chosen) {
    if (!candidate.addresses.empty()) return candidate.addresses.front().host();
  }
  return Status(Code::unreachable, "no network interface has an address");
}

Result<std::unique_ptr<Transport>> create_tcp(const TransportSetup& setup) {
  Result<std::string> address = listen_address(setup);
  if (!address.ok()) return address.status();
  tcp::Options options;
  options.rank = setup.rank;
  options.bind_address = *address;
  options.advertise_address = setup.config.advertise_address;
  options.socket_buffer = setup.config.tcp_socket_buffer;
  if (setup.config.port_range) {
    options.first_port = setup.config.port_range->first;
    options.last_port = setup.config.port_range->last;
  }
  return tcp::create(options);
}

constexpr std::array entries = {
    TransportEntry{"tcp", "TCP sockets", create_tcp},
};

const TransportEntry* find(std::string_view name) {
  for (const TransportEntry& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Status unknown(const std::string& name) {
  std::string known;
  for (const TransportEntry& entry : entries) known += (known.empty() ? "" : ", ") + std::string(entry.name);
  return Status(Code::invalid_argument, "no transport \"" + name + "\"; there are: " + known);
}

}  // namespace

std::span<const TransportEntry> transport_entries() { return entries; }

Result<std::vector<std::unique_ptr<Transport>>> make_transports(const std::vector<std::string>& names,
                                                                const TransportSetup& setup) {
  std::vector<std::unique_ptr<Transport>> transports;
  for (const std::string& name : names) {
    const TransportEntry* entry = find(name);
    if (entry == nullptr) return unknown(name);
    Result<std::unique_ptr<Transport>> made = entry->create(setup);
    if (!made.ok()) return made.status().with_context("transport " + name);
    transports.push_back(std::move(made).take());
  }
  if (!names.empty()) return transports;
  Status last(Code::unreachable, "no transport can run here");
  for (const TransportEntry& entry : entries) {
    Result<std::unique_ptr<Transport>> made = entry.create(setup);
    if (made.ok()) {
      transports.push_back(std::move(made).take());
    } else {
      last = made.status().with_context("transport " + std::string(entry.name));
      log::info("left out: ", last);
    }
  }
  if (transports.empty()) return last;
  return transports;
}

}  // namespace tutti
