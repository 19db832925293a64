#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/address.h>
#include <tutti/config.h>
#include <tutti/credentials.h>
#include <tutti/status.h>

#include "transport/transport.h"

namespace tutti {

// `TransportSetup` holds what a transport may need when it is made.
struct TransportSetup {
  const Config& config;
  // This host's address on the route to the ranks' meeting place, or nothing if it is not known.
  std::optional<SocketAddress> route = {};
  // The credentials that protect every connection. Connections are not protected if this is null.
  security::SharedCredentials credentials = {};
};

// Returns the limits of messages that the configuration asks for.
MessageLimits limits_of(const Config& config);

struct TransportEntry {
  std::string_view name;
  std::string_view meaning;
  Result<std::unique_ptr<Transport>> (*create)(const TransportSetup& setup);
  // Returns ok, or the reason for leaving the transport out if the user does not name it. If this is null,
  // the transport is never left out.
  Status (*left_out)(const Config& config) = nullptr;
  // Returns what the transport would use, if it can be made only within `init`. If this is null, `create`
  // works at any time.
  Result<std::string> (*facts)(const Config& config) = nullptr;
};

// Returns what the transport uses on this host, or why it cannot run here.
Result<std::string> facts_of(const TransportEntry& entry, const TransportSetup& setup);

// Returns the addresses, as text, on which this process listens for connections of other ranks.
// There is only one address if the user has given one, and otherwise one for each chosen interface.
// The result is never empty.
Result<std::vector<std::string>> listen_addresses(const TransportSetup& setup);

// Returns every transport between processes, in order of preference.
std::span<const TransportEntry> transport_entries();

// Makes the transports in `names`, and fails if one of them cannot run here. It ignores names of offloads
// (bindings/cpp/offloads.h). An empty list or only "auto" means all transports that can run here and are not
// `left_out`. In that case the function logs why it did not make each of the others, and fails if no
// transport can run here.
Result<std::vector<std::unique_ptr<Transport>>> make_transports(const std::vector<std::string>& names,
                                                                const TransportSetup& setup);

}  // namespace tutti
