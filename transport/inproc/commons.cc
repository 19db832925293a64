#include "transport/inproc/commons.h"

#include <new>

#include <sys/mman.h>

namespace tutti::inproc {

Commons::Commons(std::uint64_t bytes, const std::vector<std::shared_ptr<Mailbox>>& boxes)
    : bells_(boxes.begin(), boxes.end()) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  memory_ = {static_cast<std::byte*>(start), bytes};
}

Commons::~Commons() { munmap(memory_.data(), memory_.size()); }

void Commons::join() {
  bool all = false;
  {
    const std::lock_guard lock(mutex_);
    all = ++joined_ == bells_.size();
  }
  if (all) notify_all();
}

void Commons::refuse(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!refused_.ok() || joined_ == bells_.size()) return;
    refused_ = why;
  }
  notify_all();
}

std::optional<Status> Commons::outcome() const {
  const std::lock_guard lock(mutex_);
  if (refused_.ok() && joined_ < bells_.size()) return {};
  return refused_;
}

void Commons::notify_all() {
  for (const Bell& bell : bells_) bell.ring();
}

}  // namespace tutti::inproc
