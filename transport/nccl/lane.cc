#include "transport/nccl/lane.h"

#include <cstdint>
#include <map>
#include <tuple>

#include "core/fork_guard.h"

namespace tutti::nccl {

// Opening a device takes a long time. If another thread forked in that time, the child would inherit a locked
// mutex. So the lock is not held while a device is opened. A forked child must not use the lanes of its
// parent, since a thread that exists only in the parent may hold their locks.
Result<std::shared_ptr<Lane>> Lane::of(const cuda::Api& api, int number, const std::string& host) {
  using Key = std::tuple<const cuda::Api*, int, std::string, std::uint32_t>;
  static std::mutex mutex;
  static auto& lanes = *new std::map<Key, std::weak_ptr<Lane>>;
  const Key key(&api, number, host, fork_generation());
  {
    const std::lock_guard lock(mutex);
    if (std::shared_ptr<Lane> known = lanes[key].lock()) return known;
  }
  Result<std::unique_ptr<cuda::Device>> device = cuda::Device::open(api, number);
  if (!device.ok()) return device.status();
  std::shared_ptr<Lane> made(new Lane(std::move(device).take()));
  const std::lock_guard lock(mutex);
  std::weak_ptr<Lane>& shared = lanes[key];
  if (std::shared_ptr<Lane> known = shared.lock()) return known;
  shared = made;
  return made;
}

void Lane::queue(User& user) {
  turns_.push_back(&user);
  advance();
}

void Lane::launched(const User& user) {
  if (!waits_for(user)) return;
  launches_ = nullptr;
  advance();
}

void Lane::leave(User& user) {
  std::erase(turns_, &user);
  launched(user);
}

void Lane::advance() {
  while (launches_ == nullptr && !turns_.empty()) {
    User* const next = turns_.front();
    turns_.pop_front();
    if (!next->launch()) launches_ = next;
  }
}

}  // namespace tutti::nccl
