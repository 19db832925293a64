#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace tutti::security {

// A `Crowd` is a set of strangers (connections that have not proved who they are) from one origin.
// An origin is one IPv4 address, or one IPv6 network of 64 bits. Each origin has two crowds: the
// strangers that have sent the bytes with which a rank begins (`has_begun`), and the rest.
struct Crowd {
  std::uint64_t origin = 0;
  bool has_begun = false;
  friend bool operator<(const Crowd& a, const Crowd& b) {
    return a.origin != b.origin ? a.origin < b.origin : a.has_begun < b.has_begun;
  }
};

// Returns the origin of a connection, for `Crowd::origin`.
std::uint64_t origin_of(int socket);

// Returns the stranger to close when there are too many: the oldest one of the largest crowd. A crowd that
// grows therefore displaces only its own members. It does not displace a rank on another host, even if that
// rank needs several round trips to prove its identity. Strangers on a rank's own host cannot displace the
// rank once it has sent its first bytes (`has_begun`), unless they have sent such bytes, too. `oldest_first`
// must not be empty. `crowd_of(stranger)` returns the crowd of a stranger.
template <class Strangers, class CrowdOf>
auto first_to_go(Strangers& oldest_first, CrowdOf crowd_of) {
  std::map<Crowd, std::size_t> sizes;
  std::size_t most = 0;
  for (const auto& stranger : oldest_first) most = std::max(most, ++sizes[crowd_of(stranger)]);
  return std::find_if(oldest_first.begin(), oldest_first.end(),
                      [&](const auto& stranger) { return sizes[crowd_of(stranger)] == most; });
}

}  // namespace tutti::security
