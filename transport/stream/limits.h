#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "transport/transport.h"

namespace tutti {

// `StreamLimits` contains what both ends of a StreamChannel derive from the agreed MessageLimits, by the same
// rules.
struct StreamLimits {
  // Bytes of the receiver's memory that an unclaimed message takes in addition to its payload, so that empty
  // messages cost credit, too.
  static constexpr std::uint32_t overhead = 128;
  static constexpr std::uint32_t min_credit = 4 * overhead;
  // Requests of one sender that the receiver has not answered yet, and all its large messages under way: the
  // receiver keeps a table of them.
  static constexpr std::uint32_t max_unanswered = 1024;
  static constexpr std::uint32_t max_large = 4096;
  // Control frames that may wait for the pipe: more than an honest peer can cause while we cannot write.
  static constexpr std::size_t max_control = 4 * max_large;
  static constexpr std::size_t max_aborts = 64;
  static constexpr std::uint32_t max_abort_text = 1024;
  static constexpr std::uint32_t min_fragment = 64;
  // The most payloads on side connections that may be announced but not received: more than the kernel's
  // buffers hold.
  static constexpr std::uint32_t min_side_payload = 16 * 1024;
  static constexpr std::size_t max_side_queue = 4096;

  std::uint32_t eager;
  std::uint32_t credit;
  std::uint32_t fragment;

  // Half of the window can be in transit back at any time, and an eager message must fit into the other half.
  explicit StreamLimits(const MessageLimits& limits)
      : eager(limits.eager),
        credit(std::max(limits.credit, min_credit)),
        fragment(std::max(limits.fragment / min_fragment * min_fragment, min_fragment)) {
    while (eager > 0 && eager_cost(eager) > credit / 2) eager = eager / 2;
  }

  // Units of credit for an eager message: the memory that it takes at the receiver. Payloads are stored in
  // blocks of 64, 96, 128, 192, 256 ... bytes.
  static constexpr std::uint32_t block_bytes(std::uint32_t payload) {
    if (payload <= 64) return payload == 0 ? 0 : 64;
    const int bits = std::bit_width(payload - 1);
    const std::uint32_t middle = 3u << (bits - 2);
    return payload <= middle ? middle : middle / 3 * 4;
  }
  static constexpr std::uint32_t eager_cost(std::uint32_t payload) { return overhead + block_bytes(payload); }
};

}  // namespace tutti
