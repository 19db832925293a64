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

// A `Window` is a memory window of type 2. It permits the peer of one queue pair to write into a part of a
// region. A key differs from the earlier keys of the same window only in its last eight bits.
struct Window : ibv_mw {
  // The key that the card knows. `rkey` belongs to the program, which may change it before the card has
  // carried out the request that binds the window.
  std::uint32_t key = 0;
  std::uint32_t pair = 0;          // the number of the queue pair
  const Region* region = nullptr;  // null unless the window is bound
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;

  // Returns whether a packet that arrives at the queue pair may write these bytes.
  bool covers(std::uint32_t to_pair, std::uint64_t to, std::size_t count) const {
    return region != nullptr && pair == to_pair && to >= address && count <= bytes &&
           to - address <= bytes - count;
  }
};

// `Regions` knows the registered memory and the memory windows of all devices by their keys. No two regions
// ever have the same key, so the use of an old key is detected.
class Regions {
 public:
  Region* add(ibv_pd* domain, void* address, std::size_t bytes, int access);
  void remove(Region* region);
  bool any_in(const ibv_pd* domain) const;
  Window* add_window(ibv_pd* domain);
  void remove(Window* window);
  // Binds a window to a part of a region, and gives it a new key. Returns false if that breaks a rule.
  bool bind(const ibv_mw_bind_info& part, Window& window, std::uint32_t key, const ibv_qp& pair);
  // Invalidates the window with this key. Returns false if there is no such window in the domain.
  bool invalidate(std::uint32_t key, const ibv_pd* domain);
  // The first function says whether any window is bound to the region. The second one says whether any window
  // permits the peer of a queue pair to write.
  bool any_window_of(const Region& region) const;
  bool any_window_of(std::uint32_t pair) const;
  // These functions return the region or the window with this key, or null if there is none.
  const Region* local(std::uint32_t key) const { return find(local_, key); }
  const Region* remote(std::uint32_t key) const { return find(remote_, key); }
  Window* window(std::uint32_t key) const;

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
  std::map<std::uint32_t, std::unique_ptr<Window>> windows_;  // by the key without its last eight bits
  std::uint32_t last_window_ = 0x800000;
};

}  // namespace tutti::provider
