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
  // This host's address on the route to the place where the ranks meet, or nothing if it is not known.
  std::optional<SocketAddress> route = {};
  // The credentials that guard every connection. If null, connections have no guard.
  security::SharedCredentials credentials = {};
};

// Returns the limits of messages that the configuration asks for.
MessageLimits limits_of(const Config& config);

struct TransportEntry {
  std::string_view name;
  std::string_view meaning;
  Result<std::unique_ptr<Transport>> (*create)(const TransportSetup& setup);
};

// Returns the addresses, as text, on which this process listens for connections of other ranks. If the user
// gives an address, it is the only one. Otherwise there is one for each chosen interface. The result is never
// empty.
Result<std::vector<std::string>> listen_addresses(const TransportSetup& setup);

// Returns every transport between processes, in order of preference.
std::span<const TransportEntry> transport_entries();

// Makes the transports in `names`, and fails if one of them cannot run here. Ignores names of offloads
// (bindings/cpp/offloads.h). If `names` is empty or is "auto" alone, makes all transports that can run here,
// and logs why the others cannot. Fails if none can run.
Result<std::vector<std::unique_ptr<Transport>>> make_transports(const std::vector<std::string>& names,
                                                                const TransportSetup& setup);

}  // namespace tutti
