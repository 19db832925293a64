#include "transport/verbs/memory.h"

#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

#include <sys/resource.h>

#include <tutti/config_values.h>
#include <tutti/log.h>

#include "core/error_text.h"

namespace tutti::verbs {
namespace {

// Returns whether `part` lies within `whole`.
bool contains(std::span<const std::byte> whole, std::span<const std::byte> part) {
  const auto begin = reinterpret_cast<std::uintptr_t>(whole.data());
  const auto at = reinterpret_cast<std::uintptr_t>(part.data());
  return at >= begin && at - begin <= whole.size() && part.size() <= whole.size() - (at - begin);
}

Status cannot_register(std::size_t bytes, int error) {
  std::string text =
      "cannot register " + format_size(bytes) + " of memory with the device: " + error_text(error);
  if (error == EFAULT) return Status(Code::unsupported, text);
  rlimit limit = {};
  const bool limited = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (limited && (error == ENOMEM || error == EAGAIN || error == EPERM)) {
    text +=
        " (the limit of locked memory is " + format_size(limit.rlim_cur) +
        "; `ulimit -l unlimited`, LimitMEMLOCK= of systemd and --ulimit memlock=-1 of containers raise it)";
  }
  return Status(Code::resource_exhausted, text);
}

}  // namespace

Result<std::unique_ptr<Region>> Region::add(SharedDomain domain, std::span<std::byte> memory, int access) {
  ibv_mr* const region = (*domain->functions().reg_mr)(domain->raw(), memory.data(), memory.size(), access);
  if (region == nullptr) return cannot_register(memory.size(), errno);
  return std::unique_ptr<Region>(new Region(std::move(domain), region, access));
}

Region::~Region() {
  if (const int error = domain_->functions().dereg_mr(region_))
    log::warn("verbs: memory cannot be deregistered: ", error_text(error));
}

class Memory::Registration final : public RegisteredMemory {
 public:
  Registration(std::shared_ptr<Memory> owner, std::uint64_t number)
      : owner_(std::move(owner)), number_(number) {}
  ~Registration() override {
    // The region is destroyed only after the lock has been released, since its destruction may take long.
    std::unique_lock lock(owner_->mutex_);
    const auto node = owner_->entries_.extract(number_);
    lock.unlock();
  }

 private:
  const std::shared_ptr<Memory> owner_;
  const std::uint64_t number_;
};

// A `Brief` is the registration of memory for one operation. No other operation may use it, since it ends
// with its own operation.
class Memory::Brief final : public RegisteredMemory {
 public:
  explicit Brief(std::unique_ptr<Region> of) : region(std::move(of)) {}
  const std::unique_ptr<Region> region;
};

std::unique_ptr<RegisteredMemory> Memory::add_briefly(std::span<const std::byte> memory, Use use) {
  if (memory.empty() || memory.size() < register_from_) return nullptr;
  return add_brief(memory, use == Use::receiving ? brief_access() : 0);
}

std::unique_ptr<RegisteredMemory> Memory::add_brief(std::span<const std::byte> memory, int access) {
  // The cast does no harm, since the device does not write into memory that is sent.
  const std::span<std::byte> bytes(const_cast<std::byte*>(memory.data()), memory.size());
  auto region = Region::add(domain_, bytes, access);
  if (region.ok()) return std::make_unique<Brief>(*std::move(region));
  log::debug("verbs: a message is copied: ", region.status().message());
  return nullptr;
}

Result<std::unique_ptr<RegisteredMemory>> Memory::add(std::span<std::byte> memory) {
  return add(memory, IBV_ACCESS_LOCAL_WRITE | (domain_->has_windows() ? IBV_ACCESS_MW_BIND : 0));
}

Result<std::unique_ptr<RegisteredMemory>> Memory::add_staging(std::span<std::byte> memory) {
  return add(memory, brief_access());
}

Result<std::unique_ptr<RegisteredMemory>> Memory::add(std::span<std::byte> memory, int access) {
  if (memory.empty()) return std::unique_ptr<RegisteredMemory>();
  auto region = Region::add(domain_, memory, access);
  if (!region.ok()) return region.status();
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = ++added_;
  entries_.emplace(number, Entry{memory, *std::move(region)});
  return std::unique_ptr<RegisteredMemory>(std::make_unique<Registration>(shared_from_this(), number));
}

const Region* Memory::containing(std::span<const std::byte> memory) const {
  for (const auto& [number, entry] : entries_) {
    if (contains(entry.memory, memory)) return entry.region.get();
  }
  return nullptr;
}

std::optional<RemotePlace> Memory::find(std::span<const std::byte> memory) const {
  const std::shared_lock lock(mutex_);
  for (const auto& [number, entry] : entries_) {
    if (entry.region->is_writable() && contains(entry.memory, memory))
      return RemotePlace{reinterpret_cast<std::uintptr_t>(memory.data()), entry.region->remote_key()};
  }
  return std::nullopt;
}

const Region* Memory::region_of(std::span<const std::byte> memory, const RegisteredMemory* own) const {
  if (own != nullptr) return static_cast<const Brief*>(own)->region.get();
  const std::shared_lock lock(mutex_);
  return containing(memory);
}

}  // namespace tutti::verbs
