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
  // The local address of packets to the place where the ranks met, if that is known.
  std::optional<SocketAddress> route = {};
  // The guard of connections; null: none.
  security::SharedCredentials credentials = {};
};

struct TransportEntry {
  std::string_view name;
  std::string_view meaning;
  Result<std::unique_ptr<Transport>> (*create)(const TransportSetup& setup);
};

// The literal addresses that this process listens on, so that others connect to it: those that the user
// gives, or else those of the chosen interfaces. Never empty.
Result<std::vector<std::string>> listen_addresses(const TransportSetup& setup);

// Every transport between processes, in order of preference.
std::span<const TransportEntry> transport_entries();

// Makes the transports that `names` asks for, or all if it is empty or is "auto" alone. It is an error if one
// that was asked for by name cannot run here; otherwise such a transport is left out, and the log says why.
// `unreachable` if none is left.
Result<std::vector<std::unique_ptr<Transport>>> make_transports(const std::vector<std::string>& names,
                                                                const TransportSetup& setup);

}  // namespace tutti
