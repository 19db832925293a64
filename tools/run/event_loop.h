#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "transport/driver/event_loop.h"

namespace tutti::tools {

// `AsioLoop` lets descriptor handlers and timers of the library run on an `io_context`, beside its other
// handlers. Only the thread that runs `io` may use it. It must be destroyed before `io`.
class AsioLoop final : public EventLoop {
 public:
  explicit AsioLoop(asio::io_context& io);
  ~AsioLoop() override;

  Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) override;
  void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) override;
  void unwatch(int descriptor) override;

  // Makes the loop notice timers that were added outside of its own handlers.
  void rearm();

 private:
  struct Watched;

  asio::io_context& io_;
  asio::steady_timer timer_;
  std::unordered_map<int, std::shared_ptr<Watched>> watched_;
};

}  // namespace tutti::tools
