#include "transport/verbs/address.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tutti::verbs {
namespace {

constexpr std::size_t max_kinds = 8;

std::string format_fabric(const Fabric& fabric) {
  if (!fabric.ethernet) return "i" + meeting::format_hex(fabric.subnet);
  std::string text = "e";
  for (const std::uint8_t kind : fabric.kinds) text += static_cast<char>('0' + kind);
  return text;
}

std::string format_fabrics(const std::vector<Fabric>& fabrics) {
  std::string text;
  for (const Fabric& fabric : fabrics) text += (text.empty() ? "" : "+") + format_fabric(fabric);
  return text;
}

bool parse_fabric(std::string_view text, Fabric& fabric) {
  if (text.empty()) return false;
  fabric.ethernet = text.front() == 'e';
  if (!fabric.ethernet && text.front() != 'i') return false;
  text.remove_prefix(1);
  if (!fabric.ethernet) {
    fabric.kinds = {0};
    return meeting::parse_hex(text, fabric.subnet);
  }
  if (text.empty() || text.size() > max_kinds) return false;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return false;
    fabric.kinds.push_back(static_cast<std::uint8_t>(digit - '0'));
  }
  return true;
}

bool parse_fabrics(std::string_view text, std::vector<Fabric>& fabrics) {
  while (fabrics.size() < max_rails) {
    const std::size_t plus = text.find('+');
    if (!parse_fabric(text.substr(0, plus), fabrics.emplace_back())) return false;
    if (plus == text.npos) return true;
    text.remove_prefix(plus + 1);
  }
  return false;
}

}  // namespace

std::string format(const Address& address) {
  return meeting::format_endpoints(address.endpoints) + "/" + meeting::format_hex(address.nonce) + "/" +
         format_fabrics(address.fabrics) + "/" + tutti::format(address.limits);
}

std::optional<Address> parse_address(std::string_view text) {
  std::array<std::string_view, 4> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t slash = text.find('/');
    if ((slash == text.npos) != (i + 1 == parts.size())) return std::nullopt;
    parts[i] = text.substr(0, slash);
    if (slash != text.npos) text.remove_prefix(slash + 1);
  }
  Address address;
  const auto limits = parse_limits(parts[3]);
  auto endpoints = meeting::parse_endpoints(parts[0]);
  if (!limits || !endpoints || !meeting::parse_hex(parts[1], address.nonce)) return std::nullopt;
  if (!parse_fabrics(parts[2], address.fabrics)) return std::nullopt;
  address.endpoints = *std::move(endpoints);
  address.limits = *limits;
  return address;
}

std::optional<Address> published_by(const PeerInfo& peer) {
  const auto text = peer.addresses.find("verbs");
  return text == peer.addresses.end() ? std::nullopt : parse_address(text->second);
}

std::vector<std::uint8_t> common_kinds(const Fabric& a, const Fabric& b) {
  std::vector<std::uint8_t> kinds;
  if (a.ethernet != b.ethernet || a.subnet != b.subnet) return kinds;
  for (const std::uint8_t kind : a.kinds) {
    if (std::ranges::find(b.kinds, kind) != b.kinds.end()) kinds.push_back(kind);
  }
  std::ranges::sort(kinds);
  return kinds;
}

std::vector<RailPair> pair_rails(const Address& ours, const Address& theirs, bool lower) {
  const std::vector<Fabric>& first = lower ? ours.fabrics : theirs.fabrics;
  const std::vector<Fabric>& second = lower ? theirs.fabrics : ours.fabrics;
  std::vector<bool> taken(second.size(), false);
  std::vector<RailPair> pairs;
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (std::size_t j = 0; j < second.size(); ++j) {
      std::vector<std::uint8_t> kinds = common_kinds(first[i], second[j]);
      if (taken[j] || kinds.empty()) continue;
      taken[j] = true;
      pairs.push_back({lower ? i : j, lower ? j : i, std::move(kinds)});
      break;
    }
  }
  return pairs;
}

}  // namespace tutti::verbs
