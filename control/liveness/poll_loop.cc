#include "control/liveness/poll_loop.h"

#include <sys/epoll.h>

namespace tutti::liveness {

static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT, "poll() and epoll have the same flags");

Status PollLoop::watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
  watched_[descriptor] = {static_cast<short>(events), &handler};
  return {};
}

void PollLoop::rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
  watched_[descriptor] = {static_cast<short>(events), &handler};
}

void PollLoop::collect(std::vector<pollfd>& waits) const {
  for (const auto& [descriptor, watched] : watched_) waits.push_back({descriptor, watched.events, 0});
}

void PollLoop::run(std::span<const pollfd> ready, Deadline::Clock::time_point now) {
  for (const pollfd& each : ready) {
    if (each.revents == 0) continue;
    // An earlier handler may have stopped watching this descriptor.
    const auto found = watched_.find(each.fd);
    if (found != watched_.end()) found->second.handler->on_ready(static_cast<std::uint32_t>(each.revents));
  }
  timers.run(now);
}

}  // namespace tutti::liveness
