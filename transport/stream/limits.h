#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "transport/transport.h"

namespace tutti {

// `StreamLimits` are the limits of a StreamChannel. Both ends derive the same limits from the agreed
// MessageLimits.
struct StreamLimits {
  // An unclaimed message takes this many bytes of the receiver's memory in addition to its payload. So empty
  // messages cost credit as well.
  static constexpr std::uint32_t overhead = 128;
  static constexpr std::uint32_t min_credit = 4 * overhead;
  // `max_unanswered` bounds the requests of one sender that the receiver has not answered yet. `max_large`
  // bounds the sender's large messages that have not ended; the receiver keeps them in a table.
  static constexpr std::uint32_t max_unanswered = 1024;
  static constexpr std::uint32_t max_large = 4096;
  // At most this many control frames may wait for the pipe. A correct peer cannot cause that many, even while
  // this rank cannot write.
  static constexpr std::size_t max_control = 4 * max_large;
  static constexpr std::size_t max_aborts = 64;
  static constexpr std::uint32_t max_abort_text = 1024;
  static constexpr std::uint32_t min_fragment = 64;
  // A payload on a stripe has at least `min_stripe_payload` bytes. On each stripe, at most `max_stripe_queue`
  // payloads may be announced but not received yet. Together, that many payloads have more bytes than the
  // kernel's buffers can hold, so a correct peer never exceeds the limit.
  static constexpr std::uint32_t min_stripe_payload = 16 * 1024;
  static constexpr std::size_t max_stripe_queue = 4096;
  // At most `max_grants` grants of a message may be open. A message uses at most `max_chunks` staging chunks.
  static constexpr std::size_t max_grants = 8;
  static constexpr std::size_t max_chunks = 4;

  std::uint32_t eager;
  std::uint32_t credit;
  std::uint32_t fragment;

  // The receiver may hold back up to half of the credit window before it returns any credit. So an eager
  // message may cost at most the other half. Otherwise it could wait for credit forever.
  explicit StreamLimits(const MessageLimits& limits)
      : eager(limits.eager),
        credit(std::max(limits.credit, min_credit)),
        fragment(std::max(limits.fragment / min_fragment * min_fragment, min_fragment)) {
    while (eager > 0 && eager_cost(eager) > credit / 2) eager = eager / 2;
  }

  // A channel has this many staging chunks, of `fragment` bytes each.
  std::size_t staging_chunks() const { return std::max(credit / fragment, 1u); }

  // An eager message costs `eager_cost` units of credit, which are the bytes of memory that it takes at the
  // receiver. Payloads are stored in blocks of 64, 96, 128, 192, 256 ... bytes.
  static constexpr std::uint32_t block_bytes(std::uint32_t payload) {
    if (payload <= 64) return payload == 0 ? 0 : 64;
    const int bits = std::bit_width(payload - 1);
    const std::uint32_t middle = 3u << (bits - 2);
    return payload <= middle ? middle : middle / 3 * 4;
  }
  static constexpr std::uint32_t eager_cost(std::uint32_t payload) { return overhead + block_bytes(payload); }
};

}  // namespace tutti
