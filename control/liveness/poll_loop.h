#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include <poll.h>

#include "transport/driver/event_loop.h"

namespace tutti::liveness {

// A `PollLoop` is an EventLoop around poll(). Its owner calls `collect`, then poll(), then `run`.
class PollLoop final : public EventLoop {
 public:
  Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) override;
  void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) override;
  void unwatch(int descriptor) override { watched_.erase(descriptor); }

  // Appends the descriptors to wait for.
  void collect(std::vector<pollfd>& waits) const;
  // Calls the handlers of the descriptors that are ready, and the timers that are due.
  void run(std::span<const pollfd> ready, Deadline::Clock::time_point now);

 private:
  struct Watched {
    short events;
    DescriptorHandler* handler;
  };

  std::map<int, Watched> watched_;  // by descriptor
};

}  // namespace tutti::liveness
