#include "tools/run/event_loop.h"

namespace tutti::tools {

// The alarm is made now, since timers are needed most when descriptors have run out.
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
  poller_.ring();  // A caller that watches a descriptor usually sets a timer, too, perhaps after this call.
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

// Runs the timers after the descriptors: bytes that have arrived may be what a timer waits for.
void AsioLoop::run() {
  poller_.look();
  poller_.deliver();
  timers.run();
  rearm();
  await();
}

}  // namespace tutti::tools
