#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include <infiniband/verbs.h>

namespace tutti::provider {

// A `Region` is a registered piece of memory.
struct Region : ibv_mr {
  int access = 0;

  // Returns whether the region belongs to the domain, covers the bytes, and allows what `needed` says.
  bool covers(const ibv_pd* domain, std::uint64_t address, std::size_t bytes, int needed) const;
};

// `Regions` knows the registered memory of all devices by its keys. No two regions ever have the same key, so
// a key that is used too late is noticed.
class Regions {
 public:
  Region* add(ibv_pd* domain, void* address, std::size_t bytes, int access);
  void remove(Region* region);
  bool any_in(const ibv_pd* domain) const;
  // These return the region with this key, or null if there is none.
  const Region* local(std::uint32_t key) const { return find(local_, key); }
  const Region* remote(std::uint32_t key) const { return find(remote_, key); }

 private:
  using Keys = std::map<std::uint32_t, Region*>;
  static const Region* find(const Keys& keys, std::uint32_t key) {
    const auto found = keys.find(key);
    return found == keys.end() ? nullptr : found->second;
  }

  std::map<Region*, std::unique_ptr<Region>> owned_;
  Keys local_;
  Keys remote_;
  std::uint32_t last_ = 0x1000;
};

}  // namespace tutti::provider
