#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/verbs/library.h"

namespace tutti::verbs {

// A `GidKind` says what an address of a port (a GID) is made of. The kinds are in order of preference. Two
// ports can only connect with addresses of the same kind.
enum class GidKind : std::uint8_t { infiniband, v2_ipv4, v2_ipv6, v2_link_local, v1 };
inline constexpr GidKind last_gid_kind = GidKind::v1;

// Returns a text such as "RoCEv2, IPv4".
std::string_view to_string(GidKind kind);

// A `Gid` is an entry of a port's table of addresses.
struct Gid {
  GidKind kind = GidKind::infiniband;
  std::uint32_t index = 0;
  ibv_gid value = {};

  // Returns the address as text: "10.7.0.1" or "fe80::1".
  std::string text() const;
};

// Returns the first address of each kind that the port has, best kind first. If `wanted` is set, returns only
// the address at that index. An index that cannot be read, or that is empty, is skipped: a container often
// sees only some of the indexes.
std::vector<Gid> usable_gids(const Functions& functions, ibv_context& context, std::uint8_t port,
                             const ibv_port_attr& attributes, std::optional<int> wanted);

}  // namespace tutti::verbs
