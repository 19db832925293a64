#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <tutti/status.h>

namespace tutti::tools {

// A `PlacedHost` is a host with its ranks in ascending order. It has at least one rank.
struct PlacedHost {
  std::size_t index;  // the index among the hosts passed to `place`
  std::vector<int> ranks;

  friend bool operator==(const PlacedHost&, const PlacedHost&) = default;
};

// A `SlottedHost` is a host whose number of slots is known.
struct SlottedHost {
  int slots = 1;
  std::optional<int> most = std::nullopt;  // max_slots
};

enum class MapBy {
  slot,  // fill the slots of one host after the other
  node,  // deal the ranks to the hosts in turn
};

struct PlacementOptions {
  std::optional<int> ranks = std::nullopt;     // -n; without it, every slot gets a rank
  std::optional<int> per_host = std::nullopt;  // -N: no host gets more ranks than this
  MapBy map_by = MapBy::slot;
  bool oversubscribe = false;  // if there are more ranks than slots, the rest are dealt to the hosts in turn
};

// Places the ranks on the hosts. Returns the hosts that get ranks, in the order in which they were given.
// Rank 0 is on the first host. Returns `invalid_argument` if the hosts cannot take all ranks.
Result<std::vector<PlacedHost>> place(std::span<const SlottedHost> hosts, const PlacementOptions& options);

}  // namespace tutti::tools
