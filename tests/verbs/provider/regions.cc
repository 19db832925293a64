#include "tests/verbs/provider/regions.h"

#include <algorithm>

namespace tutti::provider {

bool Region::covers(const ibv_pd* domain, std::uint64_t address, std::size_t bytes, int needed) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(addr);
  return domain == pd && (access & needed) == needed && address >= begin && bytes <= length &&
         address - begin <= length - bytes;
}

Region* Regions::add(ibv_pd* domain, void* address, std::size_t bytes, int access) {
  auto region = std::make_unique<Region>();
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = bytes;
  region->access = access;
  region->lkey = ++last_;
  region->rkey = ++last_;
  Region* const added = region.get();
  local_[added->lkey] = added;
  remote_[added->rkey] = added;
  owned_[added] = std::move(region);
  return added;
}

bool Regions::any_in(const ibv_pd* domain) const {
  return std::ranges::any_of(owned_, [&](const auto& region) { return region.first->pd == domain; });
}

void Regions::remove(Region* region) {
  local_.erase(region->lkey);
  remote_.erase(region->rkey);
  owned_.erase(region);
}

}  // namespace tutti::provider
