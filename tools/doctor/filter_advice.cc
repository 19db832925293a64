#include "tools/doctor/filter_advice.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace tutti::tools::doctor {
namespace {

// `Takes` returns whether a filter would choose this address of a host.
using Takes = std::function<bool(const HostFacts& facts, const std::string& address)>;

bool reaches_all(const Examined& examined, const Takes& takes) {
  return !examined.connections.empty() &&
         std::ranges::all_of(examined.connections, [&](const Connection& connection) {
           const auto& facts = examined.hosts[connection.to].facts;
           return std::ranges::any_of(connection.paths, [&](const Path& path) {
             return path.outcome == Outcome::reached && facts && takes(*facts, path.to);
           });
         });
}

// A filter chooses all interfaces whose names begin with the filter. A filter with `=` in front
// chooses only the exact name. So `=` is needed if another interface has a name that begins with
// `name`.
bool needs_whole_name(const Examined& examined, const std::string& name) {
  return std::ranges::any_of(examined.hosts, [&](const ExaminedHost& host) {
    return host.facts && std::ranges::any_of(host.facts->interfaces, [&](const InterfaceFacts& interface) {
             return interface.name != name && interface.name.starts_with(name);
           });
  });
}

std::string filter_among(const Examined& examined, const HostFacts& first) {
  for (const InterfaceFacts& interface : first.interfaces) {
    const auto has_name = [&](const HostFacts& facts, const std::string& address) {
      const InterfaceFacts* owner = owner_of(facts, address);
      return owner != nullptr && owner->name == interface.name;
    };
    if (!reaches_all(examined, has_name)) continue;
    return (needs_whole_name(examined, interface.name) ? "=" : "") + interface.name;
  }
  for (const InterfaceFacts& interface : first.interfaces) {
    for (const AddressFacts& own : interface.addresses) {
      const std::string network = network_of(first, own.address);
      const auto is_there = [&](const HostFacts&, const std::string& address) {
        return is_in(network, address);
      };
      if (reaches_all(examined, is_there)) return network;
    }
  }
  return {};
}

}  // namespace

std::string find_filter(const Examined& examined) {
  const auto first =
      std::ranges::find_if(examined.hosts, [](const ExaminedHost& host) { return host.facts.has_value(); });
  return first == examined.hosts.end() ? "" : filter_among(examined, *first->facts);
}

}  // namespace tutti::tools::doctor
