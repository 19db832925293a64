#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "tests/support/transport_wrapper.h"

namespace tutti::test {

// A `TransportFault` is a fault that happens once, to a message that one rank sends.
struct TransportFault {
  enum class Kind : std::uint8_t {
    none,
    drop,      // message `at` counts as sent, but never leaves
    delay,     // message `at` and the messages queued behind it leave after `pause`
    truncate,  // message `at` is announced and sent with half of its bytes
    close,     // the channel breaks before message `at` is sent
    cut,       // a channel breaks within a message, after it has sent `at` frames
    refuse,    // the channel to the receiver of message `at` cannot be made
  };
  Kind kind = Kind::none;
  // The number of a message, counted over all peers; for `cut`, the number of frames.
  std::uint64_t at = 0;
  std::chrono::milliseconds pause{20};
};

// A `FaultyTransport` wraps one rank's end of another transport and causes the given fault.
class FaultyTransport final : public TransportWrapper {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, const TransportFault& fault)
      : TransportWrapper(std::move(inner)), fault_(fault) {}

  const TransportFault& fault() const { return fault_; }
  // Counts one more message. Returns whether this message gets the fault.
  bool is_it() { return count_++ == fault_.at; }

 private:
  std::unique_ptr<ChannelWrapper> wrap(int peer, std::unique_ptr<Channel> inner) override;
  bool poll() override;
  Deadline next_deadline() const override;

  const TransportFault fault_;
  std::uint64_t count_ = 0;
};

}  // namespace tutti::test
