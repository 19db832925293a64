#include "tools/run/event_loop.h"

namespace tutti::tools {

// The constructor already makes the alarm. Later there may be no free descriptors, and timers are
// needed most in that case.
AsioLoop::AsioLoop(asio::io_context& io) : alarm_(poller_.prepare_alarm()), ready_(io) {
  if (!poller_.status().ok()) return;
  ready_.assign(poller_.descriptor());
  await();
}

AsioLoop::~AsioLoop() {
  if (ready_.is_open()) ready_.release();
}

Status AsioLoop::watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
  if (!poller_.status().ok()) return poller_.status();
  if (!alarm_.ok()) return alarm_;
  poller_.ring();  // makes the loop notice a timer that the caller sets soon after this call
  return poller_.watch(descriptor, events, handler);
}

void AsioLoop::rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
  poller_.rewatch(descriptor, events, handler);
}

void AsioLoop::unwatch(int descriptor) { poller_.unwatch(descriptor); }

void AsioLoop::await() {
  const std::weak_ptr<const bool> exists = exists_;
  ready_.async_wait(asio::posix::stream_descriptor::wait_read, [this, exists](const asio::error_code& error) {
    if (!error && !exists.expired()) run();
  });
}

// Runs the timers after the descriptors, because received bytes may make a timer unnecessary.
void AsioLoop::run() {
  poller_.look();
  poller_.deliver();
  timers.run();
  rearm();
  await();
}

}  // namespace tutti::tools
