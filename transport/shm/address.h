#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/message_limits.h"
#include "transport/peer.h"

namespace tutti::shm {

// An `Address` is what an shm transport publishes:
// "tutti-10072354681305/1000/5b1c0f3de2a49786/131072,1048576,131072".
struct Address {
  std::string name;  // the listener's name in the abstract namespace
  std::uint32_t uid = 0;
  std::uint64_t nonce = 0;  // a secret of the processes that have read the table of ranks; `name` is public
  MessageLimits limits = {};
};

std::string format(const Address& address);
// Returns nothing if the text does not have that form.
std::optional<Address> parse_address(std::string_view text);
// Returns nothing if the peer has published no valid address.
std::optional<Address> published_by(const PeerInfo& peer);

}  // namespace tutti::shm
