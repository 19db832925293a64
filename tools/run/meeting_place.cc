#include "tools/run/meeting_place.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <tutti/config.h>
#include <tutti/credentials.h>

#include "tools/run/environment.h"

namespace tutti::tools {

Result<MeetingPlace> open_meeting_place(const Environment& environment, const std::string& address) {
  const Result<Config> config = Config::from_values(environment);
  if (!config.ok()) return config.status();
  const Result<security::Settings> settings = security::settings_from(*config);
  if (!settings.ok()) return settings.status();
  const Result<security::SharedCredentials> credentials = security::Credentials::create(*settings);
  if (!credentials.ok()) return credentials.status();
  tcp::StoreServerOptions options{.addresses = {address}, .credentials = *credentials};
  if (config->port_range && !names_loopback(address)) {
    options.port = config->port_range->first;
    options.last_port = config->port_range->last;
  }
  Result<std::unique_ptr<tcp::StoreServer>> store = tcp::StoreServer::create(options);
  if (!store.ok()) return store.status();
  const Result<int> master_port = find_free_port();
  if (!master_port.ok()) return master_port.status();
  return MeetingPlace{*std::move(store), address, *master_port};
}

Result<MeetingAddress> address_among(std::span<const Interface> all, const InterfaceFilter& filter,
                                     std::span<const SocketAddress> peers, const RouteTo& route_to) {
  if (peers.empty()) return MeetingAddress{loopback, {}};
  std::vector<std::string> routes;
  for (const SocketAddress& peer : peers) {
    if (const auto route = route_to(peer)) routes.push_back(route->host());
  }
  if (routes.empty()) return Status(Code::unreachable, "no route to " + peers.front().host());
  if (!filter.text.empty()) {
    const Result<std::vector<Interface>> chosen = select_interfaces(all, filter, std::nullopt);
    if (!chosen.ok()) return chosen.status();
    std::vector<std::string> allowed;
    for (const Interface& interface : *chosen) {
      for (const SocketAddress& address : interface.addresses) allowed.push_back(address.host());
    }
    std::erase_if(routes, [&](const auto& route) { return std::ranges::count(allowed, route) == 0; });
    if (routes.empty()) return MeetingAddress{allowed.front(), {}};
  }
  const auto other = std::ranges::find_if(routes, [&](const auto& route) { return route != routes.front(); });
  if (other == routes.end()) return MeetingAddress{routes.front(), {}};
  return MeetingAddress{routes.front(), "the other hosts are reached from " + routes.front() + " and from " +
                                            *other + "; the ranks meet at the first of them"};
}

}  // namespace tutti::tools
