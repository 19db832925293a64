#pragma once

#include <cstdint>
#include <memory>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "transport/driver/event_loop.h"
#include "transport/driver/poller.h"

namespace tutti::tools {

// `AsioLoop` runs descriptor handlers and timers of the library on an `io_context`, together with
// its other handlers. Only the thread that runs `io` may use it. `io.run()` does not return by
// itself while the loop exists. The loop must be destroyed before `io`, and not by one of its own
// handlers.
class AsioLoop final : public EventLoop {
 public:
  explicit AsioLoop(asio::io_context& io);
  ~AsioLoop() override;

  Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) override;
  void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) override;
  void unwatch(int descriptor) override;

  // Makes the loop notice timers that were set outside of its handlers. The loop also notices them
  // by itself at its next event, and after each call of `watch`. So only a few callers need this
  // function.
  void rearm() { poller_.set_alarm(timers.next()); }

 private:
  void await();
  void run();

  Poller poller_;
  const Status alarm_;                    // ok, or why there are no timers
  asio::posix::stream_descriptor ready_;  // the poller's descriptor, which the poller owns
  // `io` may call a handler after the destructor. This pointer tells the handler that the loop no longer
  // exists.
  const std::shared_ptr<const bool> exists_ = std::make_shared<bool>(true);
};

}  // namespace tutti::tools
