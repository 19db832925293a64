#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti {

// `MessageLimits` are the sizes that both ends of a connection must agree on. The address that a transport
// publishes contains the transport's own limits, and both ends use the smaller value of each limit
// (`minimum`). So a peer can only lower a rank's limits, but not below `least_credit` and `least_fragment`.
struct MessageLimits {
  static constexpr std::uint32_t least_credit = 1024;
  static constexpr std::uint32_t least_fragment = 1024;

  std::uint32_t eager = 128 * 1024;     // a message of at most this size is sent without asking the receiver
  std::uint32_t credit = 1024 * 1024;   // this rank stores at most this many unclaimed bytes from one peer
  std::uint32_t fragment = 128 * 1024;  // a payload travels in pieces of at most this size

  friend bool operator==(const MessageLimits&, const MessageLimits&) = default;
};

// Returns the smaller value of each limit.
MessageLimits minimum(const MessageLimits& a, const MessageLimits& b);

// Returns the text of the limits in an address: "131072,1048576,131072".
std::string format(const MessageLimits& limits);
// Parses such a text. Returns nothing if the text does not have that form, or if a limit is below its least
// value. The text is from a peer, so everything is checked.
std::optional<MessageLimits> parse_limits(std::string_view text);

}  // namespace tutti
