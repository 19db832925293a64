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

// What a transport may need to know when it is made.
struct TransportSetup {
  const Config& config;
  // The local address of packets to where the ranks met, if that is known.
  std::optional<SocketAddress> route = {};
  // What connections are guarded by; null: nothing.
  security::SharedCredentials credentials = {};
};

struct TransportEntry {
  std::string_view name;
  std::string_view meaning;
  Result<std::unique_ptr<Transport>> (*create)(const TransportSetup& setup);
};

// The literal addresses that this process listens on, so that others connect to it: what the user says, else
// those of the chosen interfaces. Never empty.
Result<std::vector<std::string>> listen_addresses(const TransportSetup& setup);

// Every transport between processes, in order of preference: an ordinary list.
std::span<const TransportEntry> transport_entries();

// Makes those that are asked for, or all if none are, or "auto" alone. Asked for by name, one that cannot run
// here is an error; otherwise it is left out, with a line in the log that says why. `unreachable` if none is
// left.
Result<std::vector<std::unique_ptr<Transport>>> make_transports(const std::vector<std::string>& names,
                                                                const TransportSetup& setup);

}  // namespace tutti
