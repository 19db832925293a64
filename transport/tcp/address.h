#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/meeting/address_text.h"
#include "transport/message_limits.h"
#include "transport/peer.h"

namespace tutti::tcp {

// An `Address` is what a tcp transport publishes:
// "10.0.0.1:4711,[2001:db8::1]:4711/8c1f00d2b5a69e37/131072,1048576,131072".
struct Address {
  meeting::Endpoints endpoints;
  // This random number identifies this very transport. A transport of a later job may get the same
  // port. That transport has another nonce, so peers do not mistake it for this one.
  std::uint64_t nonce = 0;
  MessageLimits limits = {};
};

std::string format(const Address& address);
// Returns nothing if the text does not have the form of an `Address` (above), or has more than 16 endpoints.
// The text is from a peer, so every part is checked.
std::optional<Address> parse_address(std::string_view text);
// Returns nothing if the peer has published no valid address.
std::optional<Address> published_by(const PeerInfo& peer);

}  // namespace tutti::tcp
