#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "transport/verbs/domain.h"

namespace tutti::verbs {

// `Windows` are the memory windows of one queue pair. A window that is bound permits the peer to write into a
// part of registered memory, by a key of its own. Each window belongs to one permit at a time (`Permits`).
class Windows {
 public:
  // A queue pair has at most this many windows. They are made when they are needed.
  static constexpr std::uint32_t most = 16;
  // Each window has at most two requests in the send queue at a time: it is bound, and then invalidated.
  static constexpr std::uint32_t most_requests = 2 * most;

  struct Window {
    ibv_mw* raw = nullptr;
    std::uint32_t permit = 0;   // the number of the permit
    std::uint64_t address = 0;  // of the memory that the window permits
    bool in_use = false;
  };
  // A `Waiting` permit has been asked for while all windows were in use.
  struct Waiting {
    std::uint32_t permit;
    std::span<std::byte> memory;
    ibv_mr* region;  // the region that contains the memory
  };

  explicit Windows(SharedDomain domain) : domain_(std::move(domain)) {}
  ~Windows() { clear(); }
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;

  // Returns a window that is not in use, and makes one if needed. Returns null if there are `most` windows
  // already, or the device gives none.
  Window* free();
  // Returns the window of a permit, or null if it has none.
  Window* of(std::uint32_t permit);
  bool empty() const { return windows_.empty(); }
  // Destroys all windows. No peer can write by their keys any more.
  void clear();

  std::deque<Waiting> waiting;

 private:
  const SharedDomain domain_;
  std::vector<std::unique_ptr<Window>> windows_;
};

}  // namespace tutti::verbs
