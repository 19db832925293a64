#include "transport/nccl/lane.h"

namespace tutti::nccl {

Result<std::shared_ptr<Lane>> Lane::open(const cuda::Api& api, int number) {
  Result<std::unique_ptr<cuda::Device>> device = cuda::Device::open(api, number);
  if (!device.ok()) return device.status();
  return std::shared_ptr<Lane>(new Lane(std::move(device).take()));
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
