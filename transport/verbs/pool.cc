#include "transport/verbs/pool.h"

#include <algorithm>

namespace tutti::verbs {

Result<std::unique_ptr<Pool>> Pool::create(const SharedDomain& domain, std::uint32_t slots,
                                           std::uint32_t slot_bytes) {
  for (;;) {
    auto pool = std::unique_ptr<Pool>(new Pool(slots, slot_bytes));
    const Status allocated = pool->allocate(domain);
    if (allocated.ok()) return pool;
    if (slots <= least_slots && slot_bytes <= least_bytes) return allocated;
    slots = std::max(slots / 2, std::min(slots, least_slots));
    slot_bytes = std::max(slot_bytes / 2, std::min(slot_bytes, least_bytes));
  }
}

// The memory consists of whole pages, since the device locks pages.
Status Pool::allocate(const SharedDomain& domain) {
  constexpr std::size_t page = 4096;
  const std::size_t bytes = std::size_t{receive_slots() + send_slots()} * slot_bytes_;
  memory_ = aligned_bytes(page, bytes);
  if (memory_ == nullptr) return Status(Code::resource_exhausted, "there is no memory for a connection");
  auto region = Region::add(domain, {memory_.get(), bytes}, IBV_ACCESS_LOCAL_WRITE);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  return {};
}

}  // namespace tutti::verbs
