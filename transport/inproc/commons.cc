#include "transport/inproc/commons.h"

#include <algorithm>
#include <new>

namespace tutti::inproc {

Commons::Commons(std::uint64_t bytes, std::vector<std::shared_ptr<Mailbox>> boxes)
    : boxes_(std::move(boxes)) {
  constexpr std::size_t page = 4096;
  owned_ = aligned_bytes(page, bytes);
  if (owned_ == nullptr) throw std::bad_alloc();
  memory_ = {owned_.get(), bytes};
  std::fill_n(owned_.get(), bytes, std::byte{0});
}

void Commons::join() {
  bool all = false;
  {
    const std::lock_guard lock(mutex_);
    all = ++joined_ == boxes_.size();
  }
  if (all) notify_all();
}

void Commons::refuse() {
  {
    const std::lock_guard lock(mutex_);
    if (refused_ || joined_ == boxes_.size()) return;
    refused_ = true;
  }
  notify_all();
}

Commons::Outcome Commons::outcome() const {
  const std::lock_guard lock(mutex_);
  if (refused_) return Outcome::refused;
  return joined_ == boxes_.size() ? Outcome::granted : Outcome::wait;
}

void Commons::notify_all() {
  for (const auto& box : boxes_) box->notify();
}

}  // namespace tutti::inproc
