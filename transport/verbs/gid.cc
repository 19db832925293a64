#include "transport/verbs/gid.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace tutti::verbs {
namespace {

// A queue pair refers to its address by an 8-bit index.
constexpr int most_gids = 256;

in6_addr address_of(const ibv_gid& gid) {
  in6_addr address;
  static_assert(sizeof address == sizeof gid.raw);
  std::memcpy(&address, gid.raw, sizeof address);
  return address;
}

// Returns nothing for an empty entry, or if the type of the entry is not known.
std::optional<GidKind> kind_of(const ibv_gid_entry& entry) {
  const in6_addr address = address_of(entry.gid);
  if (entry.gid.global.interface_id == 0) return std::nullopt;
  switch (entry.gid_type) {
    case IBV_GID_TYPE_IB:
      return GidKind::infiniband;
    case IBV_GID_TYPE_ROCE_V1:
      return GidKind::v1;
    case IBV_GID_TYPE_ROCE_V2:
      break;
    default:
      return std::nullopt;
  }
  if (IN6_IS_ADDR_V4MAPPED(&address)) return GidKind::v2_ipv4;
  return IN6_IS_ADDR_LINKLOCAL(&address) ? GidKind::v2_link_local : GidKind::v2_ipv6;
}

}  // namespace

std::string_view to_string(GidKind kind) {
  switch (kind) {
    case GidKind::infiniband:
      return "InfiniBand";
    case GidKind::v2_ipv4:
      return "RoCEv2, IPv4";
    case GidKind::v2_ipv6:
      return "RoCEv2, IPv6";
    case GidKind::v2_link_local:
      return "RoCEv2, link-local IPv6";
    case GidKind::v1:
      break;
  }
  return "RoCEv1";
}

std::string Gid::text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const in6_addr address = address_of(value);
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET, value.raw + 12, text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, value.raw, text.data(), text.size());
  }
  return text.data();
}

std::vector<Gid> usable_gids(const Functions& functions, ibv_context& context, std::uint8_t port,
                             const ibv_port_attr& attributes, std::optional<int> wanted) {
  const auto first = static_cast<std::uint32_t>(wanted.value_or(0));
  const auto end =
      wanted ? first + 1 : static_cast<std::uint32_t>(std::clamp(attributes.gid_tbl_len, 0, most_gids));
  std::vector<Gid> found;
  for (std::uint32_t index = first; index < end; ++index) {
    ibv_gid_entry entry = {};
    if (functions.query_gid_ex(&context, port, index, &entry, 0, sizeof entry) != 0) continue;
    const std::optional<GidKind> kind = kind_of(entry);
    const auto same = [&](const Gid& other) { return other.kind == kind; };
    if (kind && std::ranges::none_of(found, same)) found.push_back({*kind, index, entry.gid});
  }
  std::ranges::sort(found, {}, &Gid::kind);
  return found;
}

}  // namespace tutti::verbs
