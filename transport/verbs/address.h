#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/meeting/address_text.h"
#include "transport/message_limits.h"
#include "transport/peer.h"

namespace tutti::verbs {

// A `Fabric` is the network that a port is connected to, as far as the port knows.
struct Fabric {
  bool ethernet = false;
  std::uint64_t subnet = 0;         // InfiniBand: the prefix of the port's address
  std::vector<std::uint8_t> kinds;  // the kinds of addresses (`GidKind`) that the port has, best first

  friend bool operator==(const Fabric&, const Fabric&) = default;
};

// A rank uses at most this many ports.
inline constexpr std::size_t max_rails = 4;

// An `Address` is what a verbs transport publishes:
// "10.0.0.1:4711,[2001:db8::1]:4711/8c1f00d2b5a69e37/e13+e1/131072,1048576,131072".
struct Address {
  meeting::Endpoints endpoints;  // where the transport listens for the agreement on a connection
  // This random number identifies this very transport. A transport of a later job may get the same port, but
  // has another nonce.
  std::uint64_t nonce = 0;
  std::vector<Fabric> fabrics = {};  // one for each port, in the order of the ports
  MessageLimits limits = {};
};

std::string format(const Address& address);
// Returns nothing if the text does not have the form of an `Address` (above), or has more than 16 endpoints
// or `max_rails` ports. The text is from a peer, so every part is checked.
std::optional<Address> parse_address(std::string_view text);
// Returns nothing if the peer has published no valid address.
std::optional<Address> published_by(const PeerInfo& peer);

// Returns the kinds of addresses that both ports have, best first. The list is empty if the two ports cannot
// be on one network.
std::vector<std::uint8_t> common_kinds(const Fabric& a, const Fabric& b);

// A `RailPair` is a port of this rank, together with the port of the peer that it is connected to.
struct RailPair {
  std::size_t ours = 0;             // the index of the port in the address of this rank
  std::size_t theirs = 0;           // the same for the peer
  std::vector<std::uint8_t> kinds;  // the kinds of addresses that both ports have, best first
};

// Returns the pairs of ports that connect two ranks. Each port of the lower rank, in order, gets the first
// port of the higher rank that is free and may be on the same network. Both ranks get the same pairs in the
// same order. `lower` says whether this rank is the lower one.
std::vector<RailPair> pair_rails(const Address& ours, const Address& theirs, bool lower);

}  // namespace tutti::verbs
