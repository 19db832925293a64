#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/support/transport_wrapper.h"

namespace tutti::test {

// A `LateTransport` wraps one rank's end of another transport. A message that fails or is cancelled ends
// only after `polls` further polls, as on a network card. A separate thread wakes the driver for these
// polls. Until then the wrapped transport continues with a cancelled message, so it really reads and writes
// the message's memory.
class LateTransport final : public TransportWrapper {
 public:
  LateTransport(std::unique_ptr<Transport> inner, std::uint32_t polls)
      : TransportWrapper(std::move(inner)), polls_(polls) {}
  ~LateTransport() override;

  void stop() override;

  std::uint32_t polls() const { return polls_; }
  // Makes the separate thread wake the driver repeatedly until no channel has late messages.
  void wake_until_quiet();

 private:
  std::unique_ptr<ChannelWrapper> wrap(int peer, std::unique_ptr<Channel> inner) override;
  RecvOp* on_arrival(Arrival& arrival) override;
  bool poll() override;
  Deadline next_deadline() const override { return Deadline::never(); }
  void work();

  const std::uint32_t polls_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool wakes_ = false;  // the mutex guards this member and the next two
  bool stopping_ = false;
  Driver* woken_ = nullptr;
  std::thread thread_;
};

}  // namespace tutti::test
