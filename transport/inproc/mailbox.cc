#include "transport/inproc/mailbox.h"

#include <utility>

namespace tutti::inproc {

void Mailbox::start(Driver& driver) {
  const std::lock_guard lock(mutex_);
  driver_ = &driver;
}

void Mailbox::stop() {
  const std::lock_guard lock(mutex_);
  driver_ = nullptr;
  stopped_ = true;
  announced_.clear();
}

bool Mailbox::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void Mailbox::notify() {
  if (pending_.exchange(true)) return;
  const std::lock_guard lock(mutex_);
  if (driver_ != nullptr) driver_->wake();
}

void Mailbox::announce(std::shared_ptr<Pipe> pipe) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    announced_.push_back(std::move(pipe));
  }
  notify();
}

std::vector<std::shared_ptr<Pipe>> Mailbox::take_announced() {
  const std::lock_guard lock(mutex_);
  return std::exchange(announced_, {});
}

}  // namespace tutti::inproc
