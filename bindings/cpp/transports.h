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

// `TransportSetup` is what a transport may need when it is made.
struct TransportSetup {
  const Config& config;
  // The local address of packets to the place where the ranks meet, if it is known.
  std::optional<SocketAddress> route = {};
  // The credentials that guard every connection. If null, connections have no guard.
  security::SharedCredentials credentials = {};
};

struct TransportEntry {
  std::string_view name;
  std::string_view meaning;
  Result<std::unique_ptr<Transport>> (*create)(const TransportSetup& setup);
};

// Returns the literal addresses that this process listens on for connections of other ranks: those that the
// user gives, or else those of the chosen interfaces. The result is never empty.
Result<std::vector<std::string>> listen_addresses(const TransportSetup& setup);

// Returns every transport between processes, in the order of preference.
std::span<const TransportEntry> transport_entries();

// Makes the transports that `names` asks for, or all if it is empty or is "auto" alone. It is an error if a
// transport that was asked for by name cannot run here; otherwise such a transport is left out, and the log
// says why. The error is `unreachable` if none is left.
Result<std::vector<std::unique_ptr<Transport>>> make_transports(const std::vector<std::string>& names,
                                                                const TransportSetup& setup);

}  // namespace tutti
