#include "bindings/torch/completions.h"

#include <thread>
#include <utility>

#include "bindings/torch/signals.h"

namespace tutti_torch {
namespace {

// `Unsettled` counts the operations that the threads have not settled yet.
struct Unsettled {
  std::mutex mutex;
  std::condition_variable none;
  int count = 0;

  void add(int change) {
    const std::lock_guard lock(mutex);
    count += change;
    if (count == 0) none.notify_all();
  }
};

// The object is never destroyed, since the threads may run until the process ends.
Unsettled*& all_unsettled() {
  static auto* all = new Unsettled;
  return all;
}

}  // namespace

void Completions::wait_for_all(std::chrono::milliseconds limit) {
  Unsettled& all = *all_unsettled();
  std::unique_lock lock(all.mutex);
  all.none.wait_for(lock, limit, [&] { return all.count == 0; });
}

void Completions::forget_all() { all_unsettled() = new Unsettled; }

void Completions::add(c10::intrusive_ptr<PendingWork> work) {
  const auto entry = std::make_shared<Entry>();
  entry->owner = shared_from_this();
  entry->open = work->handles().size();
  entry->work = work;
  all_unsettled()->add(1);
  {
    const std::lock_guard lock(mutex_);
    outstanding_.push_back(entry);
    if (leader_of_ == nullptr) summon();
  }
  // This thread must not hold the lock here. tutti_work_then calls `on_over` immediately if the
  // operation has already ended, and `on_over` takes the lock.
  for (const WorkHandle& handle : work->handles()) {
    auto* state = new std::shared_ptr<Entry>(entry);
    if (tutti_work_then(handle.get(), &Completions::on_over, state) != TUTTI_OK) delete state;
  }
}

void Completions::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

void Completions::on_over(void* state, int, const char*, int) {
  const std::unique_ptr<std::shared_ptr<Entry>> entry(static_cast<std::shared_ptr<Entry>*>(state));
  (*entry)->owner->handle_over(*entry);
}

void Completions::handle_over(const std::shared_ptr<Entry>& entry) {
  const std::lock_guard lock(mutex_);
  // The leader itself settles the operation that it waits for.
  if (--entry->open != 0 || entry->work == nullptr || entry.get() == leader_of_ || entry->ready) return;
  entry->ready = true;
  outstanding_.remove(entry);
  ready_.push_back(entry);
  summon();
}

void Completions::summon() {
  if (idle_ > 0) {
    changed_.notify_one();
    return;
  }
  const SignalsBlocked blocked;
  std::thread([self = shared_from_this()] {
    pthread_setname_np(pthread_self(), "tutti-futures");
    self->run();
  }).detach();
}

c10::intrusive_ptr<PendingWork> Completions::take_ready() {
  c10::intrusive_ptr<PendingWork> work = std::move(ready_.front()->work);
  ready_.pop_front();
  return work;
}

c10::intrusive_ptr<PendingWork> Completions::lead(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Entry> entry = outstanding_.front();
  leader_of_ = entry.get();
  const c10::intrusive_ptr<PendingWork> work = entry->work;
  lock.unlock();
  work->drive();
  lock.lock();
  leader_of_ = nullptr;
  outstanding_.remove(entry);
  entry->work.reset();
  return work;
}

void Completions::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!has_task()) {
      if (stopped_ && outstanding_.empty()) return;
      ++idle_;
      changed_.wait(lock);
      --idle_;
    }
    c10::intrusive_ptr<PendingWork> work = ready_.empty() ? lead(lock) : take_ready();
    if (has_task()) summon();
    lock.unlock();
    work->settle();
    work.reset();
    all_unsettled()->add(-1);
    lock.lock();
  }
}

}  // namespace tutti_torch
