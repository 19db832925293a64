#include "transport/inproc/exposed_memory.h"

#include <cstring>
#include <mutex>
#include <utility>

namespace tutti::inproc {

namespace {

std::uint64_t address_of(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

// Returns whether `bytes` bytes at `address` lie within the region.
bool contains(std::span<const std::byte> region, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t begin = address_of(region.data());
  return address >= begin && address - begin <= region.size() && bytes <= region.size() - (address - begin);
}

}  // namespace

class ExposedMemory::Registration final : public RegisteredMemory {
 public:
  Registration(std::shared_ptr<ExposedMemory> owner, std::uint64_t key)
      : owner_(std::move(owner)), key_(key) {}
  ~Registration() override {
    const std::lock_guard lock(owner_->mutex_);
    owner_->regions_.erase(key_);
  }

 private:
  const std::shared_ptr<ExposedMemory> owner_;
  const std::uint64_t key_;
};

Result<std::unique_ptr<RegisteredMemory>> ExposedMemory::add(std::span<std::byte> region) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t key = ++added_;
  regions_[key] = region;
  return std::unique_ptr<RegisteredMemory>(std::make_unique<Registration>(shared_from_this(), key));
}

std::optional<RemotePlace> ExposedMemory::find(std::span<const std::byte> memory) const {
  const std::shared_lock lock(mutex_);
  const std::uint64_t address = address_of(memory.data());
  for (const auto& [key, region] : regions_) {
    if (contains(region, address, memory.size())) return RemotePlace{address, key};
  }
  return std::nullopt;
}

bool ExposedMemory::write(const RemotePlace& place, std::span<const std::byte> bytes) const {
  const std::shared_lock lock(mutex_);
  const auto found = regions_.find(place.key);
  if (found == regions_.end() || !contains(found->second, place.address, bytes.size())) return false;
  const std::span<std::byte> region = found->second;
  std::memcpy(region.data() + (place.address - address_of(region.data())), bytes.data(), bytes.size());
  return true;
}

}  // namespace tutti::inproc
