#include "transport/nccl/regions.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tutti::nccl {

class Regions::Held final : public RegisteredMemory {
 public:
  Held(std::shared_ptr<Regions> regions, std::uint64_t number)
      : regions_(std::move(regions)), number_(number) {}
  ~Held() override { regions_->remove(number_); }

 private:
  const std::shared_ptr<Regions> regions_;
  const std::uint64_t number_;
};

std::unique_ptr<RegisteredMemory> Regions::add(std::shared_ptr<Regions> regions, int device,
                                               std::span<std::byte> memory) {
  Regions& to = *regions;
  const std::lock_guard lock(to.mutex_);
  const std::uint64_t number = ++to.version_;
  to.all_.push_back({number, device, memory});
  return std::make_unique<Held>(std::move(regions), number);
}

std::vector<Regions::Region> Regions::of(int device) const {
  const std::lock_guard lock(mutex_);
  std::vector<Region> regions;
  std::ranges::copy_if(all_, std::back_inserter(regions),
                       [device](const Region& region) { return region.device == device; });
  return regions;
}

void Regions::attach(User& user) {
  const std::lock_guard lock(users_mutex_);
  users_.insert(&user);
}

void Regions::detach(User& user) {
  const std::lock_guard lock(users_mutex_);
  users_.erase(&user);
}

void Regions::remove(std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [&](const Region& region) { return region.number == number; });
    ++version_;
  }
  const std::lock_guard lock(users_mutex_);
  for (User* const user : users_) user->regions_removed();
}

}  // namespace tutti::nccl
