#include "tools/doctor/usage.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <tutti/address.h>
#include <tutti/config_values.h>

#include "core/shown.h"

namespace tutti::tools::doctor {
namespace {

constexpr std::size_t most_targets = 8;

// Returns whether an address is link-local, such as fe80::1%eth0. Such an address has a meaning only on the
// host that it was found on.
bool is_link_local(const AddressFacts& address) { return address.address.find('%') != std::string::npos; }

// Converts the facts to the `Interface` objects from which tutti chooses. It leaves out link-local addresses:
// this host may have an interface of the same name, whose network is another one.
std::vector<Interface> interfaces_of(const HostFacts& facts) {
  std::vector<Interface> interfaces;
  for (const InterfaceFacts& one : facts.interfaces) {
    Interface interface {
      .name = one.name, .loopback = one.loopback, .addresses = {}
    };
    for (const AddressFacts& address : one.addresses) {
      if (is_link_local(address)) continue;
      if (const auto parsed = parse_address(address.address, 0)) interface.addresses.push_back(*parsed);
    }
    if (!interface.addresses.empty()) interfaces.push_back(std::move(interface));
  }
  return interfaces;
}

InterfaceFilter filter_of(const HostFacts& facts) {
  return {.text = facts.filter, .variable = facts.filter_variable};
}

// Returns the network of an address. The first `prefix` bits of the address identify the network.
std::string network_with(const std::string& address, int prefix) {
  const int family = address.find(':') == address.npos ? AF_INET : AF_INET6;
  std::array<unsigned char, 16> bytes{};
  const int most = family == AF_INET ? 32 : 128;
  if (prefix <= 0 || prefix > most || inet_pton(family, address.c_str(), bytes.data()) != 1) return {};
  for (int bit = prefix; bit < most; ++bit) {
    bytes[static_cast<std::size_t>(bit / 8)] &= static_cast<unsigned char>(~(0x80 >> (bit % 8)));
  }
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, bytes.data(), text, sizeof text);
  return std::string(text) + "/" + std::to_string(prefix);
}

bool has(const HostFacts& facts, const std::string& address) { return owner_of(facts, address) != nullptr; }

// Returns whether the host's probe listens on an address in the network.
bool is_on(const HostFacts& facts, const std::string& network) {
  return std::ranges::any_of(facts.interfaces, [&](const InterfaceFacts& interface) {
    return std::ranges::any_of(interface.addresses, [&](const AddressFacts& address) {
      return address.port != 0 && is_in(network, address.address);
    });
  });
}

}  // namespace

Result<MeetingAddress> meeting_of(const HostFacts& first, const std::vector<std::string>& peers,
                                  const std::vector<std::string>& routes) {
  std::vector<SocketAddress> addresses;
  for (const std::string& peer : peers) {
    if (const auto address = parse_address(peer, 0)) addresses.push_back(*address);
  }
  const auto route_to = [&](const SocketAddress& target) -> std::optional<SocketAddress> {
    const auto found = std::ranges::find(peers, target.host());
    const auto index = static_cast<std::size_t>(found - peers.begin());
    if (index >= routes.size()) return {};
    return parse_address(routes[index], 0);
  };
  return address_among(interfaces_of(first), filter_of(first), addresses, route_to);
}

Usage usage_of(const HostFacts& facts, const std::string& route) {
  const auto chosen = select_interfaces(interfaces_of(facts), filter_of(facts), parse_address(route, 0));
  Usage usage;
  if (!chosen.ok()) {
    usage.problem = printable(chosen.status().message());
    return usage;
  }
  for (const Interface& interface : *chosen) usage.addresses.push_back(interface.addresses.front().host());
  return usage;
}

const InterfaceFacts* owner_of(const HostFacts& facts, const std::string& address) {
  for (const InterfaceFacts& interface : facts.interfaces) {
    for (const AddressFacts& own : interface.addresses) {
      if (own.address == address) return &interface;
    }
  }
  return nullptr;
}

std::string network_of(const HostFacts& facts, const std::string& address) {
  const InterfaceFacts* owner = owner_of(facts, address);
  if (owner == nullptr) return {};
  const auto own = std::ranges::find(owner->addresses, address, &AddressFacts::address);
  return network_with(address, own->prefix);
}

bool is_in(const std::string& network, const std::string& address) {
  const std::size_t slash = network.find('/');
  if (slash == network.npos) return false;
  const auto prefix = parse_integer(network.substr(slash + 1));
  return prefix && network_with(address, static_cast<int>(*prefix)) == network;
}

std::vector<Target> targets_of(std::span<const Resident> hosts, std::size_t from, std::size_t to) {
  const auto is_shared = [&](const std::string& address) {
    return std::ranges::count_if(
               hosts, [&](const Resident& host) { return host.facts && has(*host.facts, address); }) > 1;
  };
  std::vector<Target> used, near, others;
  for (const InterfaceFacts& interface : hosts[to].facts->interfaces) {
    for (const AddressFacts& address : interface.addresses) {
      if (address.port == 0) continue;
      const bool is_used = std::ranges::count(hosts[to].usage->addresses, address.address) != 0;
      if (is_shared(address.address) && !is_used) continue;
      const std::string network = network_of(*hosts[to].facts, address.address);
      std::vector<Target>& kind = is_used ? used : is_on(*hosts[from].facts, network) ? near : others;
      kind.push_back(
          {.host = static_cast<std::uint32_t>(to), .address = address.address, .port = address.port});
    }
  }
  used.insert(used.end(), near.begin(), near.end());
  std::vector<Target>& targets = used.empty() ? others : used;
  if (targets.size() > most_targets) targets.resize(most_targets);
  return std::move(targets);
}

}  // namespace tutti::tools::doctor
