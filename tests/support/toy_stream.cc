#include "tests/support/toy_stream.h"

#include <chrono>
#include <utility>

namespace tutti::test {

void ToyEvent::happen() {
  const std::lock_guard lock(mutex_);
  happened_ = true;
  changed_.notify_all();
}

bool ToyEvent::happened() const {
  const std::lock_guard lock(mutex_);
  return happened_;
}

void ToyEvent::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return happened_; });
}

bool ToyEvent::wait_briefly() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(1), [this] { return happened_; });
}

ToyStream::ToyStream() : thread_([this] { work(); }) {}

ToyStream::~ToyStream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ToyStream::add(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_one();
}

std::shared_ptr<ToyEvent> ToyStream::record() {
  auto event = std::make_shared<ToyEvent>();
  add([event] { event->happen(); });
  return event;
}

void ToyStream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> next = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    next();
    lock.lock();
  }
}

}  // namespace tutti::test
