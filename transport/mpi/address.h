#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/message_limits.h"
#include "transport/peer.h"

namespace tutti::mpi {

// An `Address` is what an MPI transport publishes:
// "5b1c0f3de2a49786/3/0/90d1a4e2c6b7f835/131072,1048576,131072".
struct Address {
  std::uint64_t world = 0;  // says which MPI world the rank is in
  int rank = 0;             // the number of the rank's process in that world
  int tag = 0;              // the tag of messages for this transport
  std::uint64_t nonce = 0;  // says which transport has sent a packet
  MessageLimits limits = {};
};

std::string format(const Address& address);
// Returns nothing if the text does not have that form.
std::optional<Address> parse_address(std::string_view text);
// Returns nothing if the peer has published no valid address.
std::optional<Address> published_by(const PeerInfo& peer);

}  // namespace tutti::mpi
