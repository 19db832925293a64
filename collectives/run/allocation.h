#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <tutti/memory.h>

#include "collectives/schedule/registered.h"
#include "collectives/schedule/topology.h"
#include "core/flat_status.h"
#include "core/free_delete.h"
#include "core/memory_limit.h"
#include "transport/allocated_memory.h"
#include "transport/driver/driver.h"
#include "transport/registered_memory.h"
#include "transport/shared_segment.h"

namespace tutti {

// `GroupMemory` is the memory of one call of `Communicator::allocate`: a part for each rank. The ranks share
// the memory. If they cannot share memory, or if the memory belongs to devices, this object has only this
// rank's part. Any thread may call `release`.
class GroupMemory {
 public:
  // Returns the size in bytes of a segment with a part of `parts[r]` bytes for each rank r.
  static std::uint64_t segment_bytes(const std::vector<std::uint64_t>& parts);
  // If `segment` is null, the memory is ordinary memory, which is not shared.
  GroupMemory(std::unique_ptr<SharedSegment> segment, int rank, const std::vector<std::uint64_t>& parts);
  // Makes memory of a device.
  GroupMemory(std::unique_ptr<AllocatedMemory> device, int rank, const std::vector<std::uint64_t>& parts);
  ~GroupMemory();
  GroupMemory(const GroupMemory&) = delete;
  GroupMemory& operator=(const GroupMemory&) = delete;

  std::byte* data() const { return part(rank_); }
  std::uint64_t bytes() const { return bytes_[static_cast<std::size_t>(rank_)]; }

  // Keeps this rank's part registered with the transports as long as the memory exists.
  void keep(std::vector<std::unique_ptr<RegisteredMemory>> registrations) {
    registrations_ = std::move(registrations);
  }
  bool shared() const { return segment_ != nullptr; }
  // Returns whether collectives can work on the memory in place.
  bool registered() const { return shared() || (device_ != nullptr && device_->registered()); }
  std::byte* part(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }
  std::uint64_t bytes(int rank) const { return bytes_[static_cast<std::size_t>(rank)]; }
  // Notes that this rank does not use the memory any more. This object may be destroyed once `release` has
  // returned. Other ranks may use the memory until all have released it. Returns true if this rank is the
  // last to release it.
  bool release();
  bool released_by_all() const;

 private:
  const std::unique_ptr<SharedSegment> segment_;
  const int rank_;
  std::vector<std::byte*> parts_;
  std::vector<std::uint64_t> bytes_;
  AlignedBytes memory_;
  std::unique_ptr<AllocatedMemory> device_;
  std::vector<std::unique_ptr<RegisteredMemory>> registrations_;
  std::atomic<std::uint32_t>* releases_ = nullptr;  // counts the releases; lies in the segment
  std::atomic<bool> released_{false};  // by this rank; not in the segment, where others could change it
};

// `AllocationTable` holds the allocations of a group, by number. They stay mapped until all ranks have
// released them, since another rank's vote may still refer to them. The table is thread-safe, but only the
// driving thread may call `add`, `drop_unused` and `clear`, since these may destroy a segment.
class AllocationTable final : public Registry {
 public:
  // All ranks must add allocations in the same order, so that an allocation has the same number on all ranks.
  // `add` and `drop_unused` drop the allocations that all ranks have released.
  void add(std::shared_ptr<GroupMemory> memory);
  void drop_unused();
  void clear();

  Place find(const void* data, std::uint64_t bytes) const override;
  std::byte* resolve(int rank, const Place& place) const override;

 private:
  struct Entry {
    std::uint64_t number;
    std::shared_ptr<GroupMemory> memory;
  };
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // only a few
  std::uint64_t made_ = 0;
};

// An `AllocationVote` is the memory that a rank requests. For memory of the host, it also has the limits of
// the rank's host and control group. Memory of a device has been allocated already, and the vote says whether
// that has succeeded.
struct AllocationVote {
  std::uint64_t bytes = 0;
  MemoryLimits limits{};
  Memory memory{};
  FlatStatus<240> outcome{};
};
static_assert(std::is_trivially_copyable_v<AllocationVote> && sizeof(AllocationVote) == 280,
              "votes are sent as they are, so they have no gaps");

// A `Shortage` is a lack of memory on the host of a rank.
struct Shortage {
  int rank;
  std::uint64_t wanted;  // the bytes that the ranks on its host, or in its control group, request
  std::uint64_t limit;   // the bytes that all of these ranks together may have
};
// Returns the first shortage. The result depends only on values that all ranks know, so all ranks reach the
// same decision.
std::optional<Shortage> find_shortage(const std::vector<AllocationVote>& votes, const Topology& topology);

}  // namespace tutti
