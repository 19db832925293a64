#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/free_delete.h"
#include "transport/stream/limits.h"
#include "transport/stream/permits.h"
#include "transport/stream/remote_memory.h"

namespace tutti {

// `Staging` is registered memory of a channel, in chunks. If a message cannot be written straight into its
// receive's memory, the peer writes it into these chunks. The memory is allocated when the first chunk is
// taken.
class Staging {
 public:
  explicit Staging(const StreamLimits& limits) : chunk_(limits.fragment), count_(limits.staging_chunks()) {}

  // Returns a free chunk. Returns null if there is none, if the memory cannot be allocated or registered, or
  // if the peer may not write into it yet.
  std::byte* take(RemoteMemory& remote, Permits* permits) {
    if (!tried_) prepare(remote, permits);
    if (!permitted_ || free_.empty()) return nullptr;
    std::byte* const chunk = free_.back();
    free_.pop_back();
    return chunk;
  }
  void put(std::byte* chunk) { free_.push_back(chunk); }
  // Returns whether some chunks have been taken, and will be put back.
  bool is_in_use() const { return permitted_ && free_.size() < count_; }
  // From now on, the peer may write into the chunks.
  void permitted(const RemotePlace& place) {
    place_ = place;
    permitted_ = true;
  }
  RemotePlace place(const std::byte* chunk) const {
    RemotePlace place = place_;
    place.address += static_cast<std::uint64_t>(chunk - memory_.get());
    return place;
  }

 private:
  void prepare(RemoteMemory& remote, Permits* permits) {
    constexpr std::size_t page = 4096;
    tried_ = true;
    memory_ = aligned_bytes(page, chunk_ * count_);
    if (memory_ == nullptr) return;
    const std::span<std::byte> all(memory_.get(), chunk_ * count_);
    auto registration = remote.add_staging(all);
    if (!registration.ok()) return;
    registration_ = *std::move(registration);
    RemotePlace place;
    if (permits == nullptr) {
      permitted(remote.find(all).value_or(place));
    } else if (permits->permit(staging_permit, all, nullptr, place) == Permits::Answer::given) {
      permitted(place);
    }
    for (std::size_t i = count_; i-- > 0;) free_.push_back(memory_.get() + i * chunk_);
  }

  const std::size_t chunk_;
  const std::size_t count_;
  bool tried_ = false;
  bool permitted_ = false;
  AlignedBytes memory_;
  std::unique_ptr<RegisteredMemory> registration_;  // destroyed before the memory
  RemotePlace place_;
  std::vector<std::byte*> free_;
};

}  // namespace tutti
