#include "tools/run/host_lookup.h"

#include <algorithm>
#include <chrono>
#include <list>

#include <tutti/deadline.h>

#include "rendezvous/launch/interfaces.h"
#include "tools/run/meeting_place.h"

namespace tutti::tools {
namespace {

constexpr std::chrono::seconds longest_lookup(2);
// There is a limit because addresses make the agents' command lines long, and because the agents
// try the addresses one after the other.
constexpr std::size_t most_addresses = 8;

bool is_own(const SocketAddress& address, std::span<const Interface> interfaces) {
  return address.is_loopback() || std::ranges::any_of(interfaces, [&](const Interface& interface) {
           return std::ranges::any_of(interface.addresses,
                                      [&](const auto& own) { return own.host() == address.host(); });
         });
}

// Adds an address unless the list is full or already contains it.
void add(std::vector<SocketAddress>& addresses, const SocketAddress& address) {
  const bool is_known =
      std::ranges::any_of(addresses, [&](const auto& other) { return other.host() == address.host(); });
  if (!is_known && addresses.size() < most_addresses) addresses.push_back(address);
}

Result<std::vector<SocketAddress>> addresses_named(const std::string& chosen,
                                                   std::span<const Interface> interfaces) {
  std::string known;
  for (const Interface& interface : interfaces) {
    known += " " + interface.name;
    if (interface.name == chosen) return interface.addresses;
  }
  const std::optional<SocketAddress> address = parse_address(chosen, 0);
  if (address && is_own(*address, interfaces)) return std::vector{*address};
  return Status(Code::invalid_argument,
                "--call-back " + chosen + ": this machine has no such address or interface; it has" + known);
}

}  // namespace

std::vector<LocatedHost> locate(const std::vector<ListedHost>& hosts) {
  const Result<std::vector<Interface>> listed = list_interfaces();
  const std::vector<Interface> interfaces = listed.ok() ? *listed : std::vector<Interface>();
  std::list<Resolution> lookups;
  for (const ListedHost& host : hosts) lookups.emplace_back(host.name, 0);
  const Deadline deadline = Deadline::after(longest_lookup);
  std::vector<LocatedHost> result;
  for (const ListedHost& host : hosts) {
    LocatedHost& located = result.emplace_back(LocatedHost{.listed = host, .address = {}});
    const Resolution::Answer answer = lookups.front().wait(deadline);
    lookups.pop_front();
    if (!answer.ok() || answer->empty()) continue;
    located.address = answer->front();
    located.is_here = host.user.empty() && std::ranges::any_of(*answer, [&](const SocketAddress& address) {
                        return is_own(address, interfaces);
                      });
  }
  return result;
}

Result<std::vector<SocketAddress>> call_back_addresses(std::span<const LocatedHost> hosts,
                                                       const std::string& chosen) {
  const Result<std::vector<Interface>> interfaces = list_interfaces();
  if (!interfaces.ok()) return interfaces.status();
  if (!chosen.empty()) return addresses_named(chosen, *interfaces);
  std::vector<SocketAddress> result;
  bool any_unknown = false;
  for (const LocatedHost& host : hosts) {
    const auto target = host.is_here ? parse_address(loopback, 0) : host.address;
    const auto source = target ? route_source(*target) : std::nullopt;
    if (source) add(result, *source);
    any_unknown |= !source;
  }
  if (!any_unknown) return result;
  const Result<std::vector<Interface>> usable = select_interfaces(*interfaces, {}, std::nullopt);
  if (!usable.ok()) return usable.status();
  for (const Interface& interface : *usable) {
    for (const SocketAddress& address : interface.addresses) add(result, address);
  }
  return result;
}

}  // namespace tutti::tools
