#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace tutti::security {

// A `Crowd` is a set of strangers of one kind: they connect from one address (in IPv6, from one network,
// given by the first 64 bits), and either all of them are silent, or all of them have begun as ranks do.
struct Crowd {
  std::uint64_t origin = 0;
  bool has_begun = false;
  friend bool operator<(const Crowd& a, const Crowd& b) {
    return a.origin != b.origin ? a.origin < b.origin : a.has_begun < b.has_begun;
  }
};

// Returns the origin of a connection, for `Crowd::origin`.
std::uint64_t origin_of(int socket);

// Finds the stranger to close when there are too many: the oldest of the largest crowd. So a crowd displaces
// only itself. A rank of another host, which takes some round trips to say who it is, stays. So does a rank
// of the host that the crowd connects from, unless the crowd begins as ranks do. `oldest_first` is not empty;
// `crowd_of` says to which crowd one of them belongs.
template <class Strangers, class CrowdOf>
auto first_to_go(Strangers& oldest_first, CrowdOf crowd_of) {
  std::map<Crowd, std::size_t> sizes;
  std::size_t most = 0;
  for (const auto& stranger : oldest_first) most = std::max(most, ++sizes[crowd_of(stranger)]);
  return std::find_if(oldest_first.begin(), oldest_first.end(),
                      [&](const auto& stranger) { return sizes[crowd_of(stranger)] == most; });
}

}  // namespace tutti::security
