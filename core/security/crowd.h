#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>

namespace tutti::security {

// A `Crowd` is the strangers from one address (for IPv6: one network, the first 64 bits) that are all silent,
// or that have all sent a valid first message.
struct Crowd {
  std::uint64_t origin = 0;
  bool has_begun = false;
  friend auto operator<=>(const Crowd&, const Crowd&) = default;
};

// The origin of a connection, for `Crowd::origin`.
std::uint64_t origin_of(int socket);

// Finds the stranger to close if there are too many: the oldest of the largest crowd. So a crowd displaces
// itself. A rank of another host, which takes some round trips to say who it is, stays; and so does one of
// the host that the crowd comes from, unless the crowd begins as ranks do. `oldest_first` is not empty;
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
