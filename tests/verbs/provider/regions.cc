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
  ++last_;
  // As with Soft-RoCE, memory that peers must not access has no key for them.
  region->rkey = (access & IBV_ACCESS_REMOTE_WRITE) == 0 ? 0 : last_;
  Region* const added = region.get();
  local_[added->lkey] = added;
  if (added->rkey != 0) remote_[added->rkey] = added;
  owned_[added] = std::move(region);
  return added;
}

bool Regions::any_in(const ibv_pd* domain) const {
  return std::ranges::any_of(owned_, [&](const auto& region) { return region.first->pd == domain; }) ||
         std::ranges::any_of(windows_, [&](const auto& window) { return window.second->pd == domain; });
}

void Regions::remove(Region* region) {
  local_.erase(region->lkey);
  if (region->rkey != 0) remote_.erase(region->rkey);
  owned_.erase(region);
}

Window* Regions::add_window(ibv_pd* domain) {
  auto window = std::make_unique<Window>();
  window->context = domain->context;
  window->pd = domain;
  window->type = IBV_MW_TYPE_2;
  window->rkey = window->key = ++last_window_ << 8U;
  return (windows_[last_window_] = std::move(window)).get();
}

void Regions::remove(Window* window) { windows_.erase(window->rkey >> 8U); }

Window* Regions::window(std::uint32_t key) const {
  const auto found = windows_.find(key >> 8U);
  return found == windows_.end() || found->second->key != key ? nullptr : found->second.get();
}

bool Regions::bind(const ibv_mw_bind_info& part, Window& window, std::uint32_t key, const ibv_qp& pair) {
  const auto* const region = static_cast<const Region*>(part.mr);
  const bool known = owned_.contains(static_cast<Region*>(part.mr));
  if (!known || window.region != nullptr || window.pd != pair.pd || part.length == 0) return false;
  if ((key >> 8U) != (window.key >> 8U) || key == window.key) return false;
  if (!region->covers(pair.pd, part.addr, part.length, IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE))
    return false;
  if (part.mw_access_flags != IBV_ACCESS_REMOTE_WRITE) return false;
  window.key = key;
  window.pair = pair.qp_num;
  window.region = region;
  window.address = part.addr;
  window.bytes = part.length;
  return true;
}

bool Regions::invalidate(std::uint32_t key, const ibv_pd* domain) {
  Window* const found = window(key);
  if (found == nullptr || found->pd != domain) return false;
  found->region = nullptr;
  return true;
}

bool Regions::any_window_of(const Region& region) const {
  return std::ranges::any_of(windows_, [&](const auto& entry) { return entry.second->region == &region; });
}

bool Regions::any_window_of(std::uint32_t pair) const {
  return std::ranges::any_of(windows_, [&](const auto& entry) {
    return entry.second->region != nullptr && entry.second->pair == pair;
  });
}

}  // namespace tutti::provider
