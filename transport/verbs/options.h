#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <tutti/credentials.h>

#include "transport/meeting/listeners.h"
#include "transport/message_limits.h"
#include "transport/verbs/settings.h"

namespace tutti::verbs {

struct Functions;

// `Options` configure a verbs transport. The `ListenPlaces` are where ranks agree on their queue pairs, over
// TCP.
struct Options : meeting::ListenPlaces {
  Settings settings = {};
  // A connection has `slots` receive slots of `slot_bytes` bytes each, and half as many send slots. If the
  // memory cannot be registered, it has fewer and smaller ones. `slot_bytes` must be a multiple of 64, and at
  // least 128.
  std::uint32_t slots = 32;
  std::uint32_t slot_bytes = 8192;
  // If the memory of a large message is not registered and has at least this many bytes, it is registered for
  // this message. Smaller messages are copied. Without a value, the transport measures the size above
  // which registering is faster than copying.
  std::optional<std::size_t> register_from = {};
  // For each limit, the smaller of this rank's value and the peer's value applies.
  MessageLimits limits = {};
  // A process that connects must say who it is within this time.
  std::chrono::milliseconds handshake_timeout{5000};
  // A path is a pair of ports with one kind of address. While no packet has come back over a path, this rank
  // sends another packet after each `probe_interval`, and asks the peer over TCP whether it is awake. The
  // path is given up once the peer has given `most_checks` answers, or after `probe_timeout` if the peer is
  // too slow for that. Once the peer has given 2 * `most_checks` answers over all paths, no further path is
  // tried.
  std::chrono::milliseconds probe_interval{250};
  int most_checks = 6;
  std::chrono::milliseconds probe_timeout{15000};
  // This holds the credentials that guard every connection. If it is null, connections have no guard.
  security::SharedCredentials credentials = {};
  // If true, payloads must be encrypted. This transport encrypts nothing, so `create` then fails.
  bool encrypted = false;
  // The functions to use in place of libibverbs; null means libibverbs. They must stay valid until the
  // process ends.
  const Functions* functions = nullptr;
};

}  // namespace tutti::verbs
