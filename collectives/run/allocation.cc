#include "collectives/run/allocation.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tutti {

namespace {

constexpr std::uint64_t page = 4096;

constexpr std::uint64_t pages(std::uint64_t bytes) { return (bytes + page - 1) / page * page; }

// Larger sizes are counted as this size, because their sums could overflow.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62;

}  // namespace

std::optional<Shortage> find_shortage(const std::vector<AllocationVote>& votes, const Topology& topology) {
  for (int rank = 0; rank < topology.size(); ++rank) {
    const MemoryLimits& limits = votes[static_cast<std::size_t>(rank)].limits;
    std::uint64_t on_host = 0, in_group = 0;
    for (const int other : topology.members(topology.host_of(rank))) {
      const AllocationVote& vote = votes[static_cast<std::size_t>(other)];
      const std::uint64_t bytes = std::min(vote.bytes, most_bytes);
      on_host = std::min(on_host + bytes, most_bytes);
      if (vote.limits.group_id == limits.group_id) in_group = std::min(in_group + bytes, most_bytes);
    }
    const std::uint64_t machine = std::min(limits.machine, most_bytes - 1);
    if (on_host > machine) return Shortage{rank, on_host, machine};
    if (in_group > limits.group) return Shortage{rank, in_group, limits.group};
  }
  return std::nullopt;
}

std::uint64_t GroupMemory::segment_bytes(const std::vector<std::uint64_t>& parts) {
  std::uint64_t total = page;
  for (const std::uint64_t bytes : parts) total += pages(bytes);
  return total;
}

GroupMemory::GroupMemory(std::unique_ptr<SharedSegment> segment, int rank,
                         const std::vector<std::uint64_t>& parts)
    : segment_(std::move(segment)), rank_(rank), parts_(parts.size()), bytes_(parts) {
  if (segment_ != nullptr) {
    std::byte* next = segment_->memory().data();
    releases_ = std::launder(reinterpret_cast<std::atomic<std::uint32_t>*>(next));
    next += page;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts_[i] = next;
      next += pages(parts[i]);
    }
    return;
  }
  const std::uint64_t bytes = std::max(pages(parts[static_cast<std::size_t>(rank)]), page);
  memory_ = aligned_bytes(page, bytes);
  if (memory_ == nullptr) throw std::bad_alloc();
  std::fill_n(memory_.get(), bytes, std::byte{0});
  parts_[static_cast<std::size_t>(rank)] = memory_.get();
}

GroupMemory::GroupMemory(std::unique_ptr<AllocatedMemory> device, int rank,
                         const std::vector<std::uint64_t>& parts)
    : rank_(rank), parts_(parts.size()), bytes_(parts), device_(std::move(device)) {
  parts_[static_cast<std::size_t>(rank)] = device_->data();
}

GroupMemory::~GroupMemory() = default;

bool GroupMemory::release() {
  const bool last = releases_ == nullptr || releases_->fetch_add(1) + 1 >= parts_.size();
  released_.store(true);
  return last;
}

bool GroupMemory::released_by_all() const {
  return releases_ == nullptr || (released_.load() && releases_->load() >= parts_.size());
}

void AllocationTable::add(std::shared_ptr<GroupMemory> memory) {
  drop_unused();
  const std::lock_guard lock(mutex_);
  entries_.push_back({++made_, std::move(memory)});
}

void AllocationTable::drop_unused() {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const Entry& entry) { return entry.memory->released_by_all(); });
}

void AllocationTable::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

Place AllocationTable::find(const void* data, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(entry.memory->data());
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    if (at < begin || at - begin > entry.memory->bytes() || bytes > entry.memory->bytes() - (at - begin))
      continue;
    return {entry.number, at - begin, bytes};
  }
  return {};
}

std::byte* AllocationTable::resolve(int rank, const Place& place) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.number != place.allocation) continue;
    const std::uint64_t bytes = entry.memory->bytes(rank);
    if (place.offset > bytes || place.bytes > bytes - place.offset) return nullptr;
    return entry.memory->part(rank) + place.offset;
  }
  return nullptr;
}

}  // namespace tutti
