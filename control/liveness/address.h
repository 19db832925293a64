#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/liveness/process.h"

namespace tutti::liveness {

// An `Address` is what a rank publishes about its control plane. As text, it is the host and port, the nonce,
// the PID namespace and the start time: "10.0.0.1:4711/8c1f00d2b5a69e37/4026531836/123456".
struct Address {
  std::string host;  // a literal address, or the name that a user advertises
  std::uint16_t port = 0;
  std::uint64_t nonce = 0;  // random, so that a later process at the same port is not mistaken for this one
  ProcessIdentity process;
};

std::string format(const Address& address);
// Parses an address. Returns nothing if the text is not an address. The text comes from a peer, so every part
// of it is checked.
std::optional<Address> parse_address(std::string_view text);

// `address_name` is the name of this address in a PeerInfo.
inline constexpr const char* address_name = "control";

}  // namespace tutti::liveness
