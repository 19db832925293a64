#include "rendezvous/launch/interfaces.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <tutti/config_values.h>

#include "core/error_text.h"

namespace tutti {
namespace {

bool is_link_local(const SocketAddress& address) {
  return address.family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr);
}

int preference(const SocketAddress& address) {
  if (address.family() == AF_INET) return 0;
  return is_link_local(address) ? 2 : 1;
}

bool is_virtual(const Interface& interface) {
  static constexpr std::array<std::string_view, 9> prefixes = {"docker", "virbr", "cni",   "veth",  "br-",
                                                               "lxcbr",  "lxdbr", "vmnet", "podman"};
  return std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return interface.name.starts_with(prefix); });
}

std::span<const unsigned char> address_bytes(const SocketAddress& address) {
  if (address.family() == AF_INET) {
    return {reinterpret_cast<const unsigned char*>(
                &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr),
            4};
  }
  return {reinterpret_cast<const unsigned char*>(
              &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr),
          16};
}

struct Cidr {
  SocketAddress network;
  unsigned bits;

  bool contains(const SocketAddress& address) const {
    if (address.family() != network.family()) return false;
    const auto left = address_bytes(address), right = address_bytes(network);
    const unsigned whole = bits / 8, rest = bits % 8;
    if (!std::equal(left.begin(), left.begin() + whole, right.begin())) return false;
    return rest == 0 || ((left[whole] ^ right[whole]) >> (8 - rest)) == 0;
  }
};

std::optional<Cidr> parse_cidr(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::optional<SocketAddress> network = parse_address(text.substr(0, slash), 0);
  const std::optional<std::int64_t> bits = parse_integer(text.substr(slash + 1));
  if (!network || !bits || *bits < 0) return std::nullopt;
  const unsigned most = network->family() == AF_INET ? 32 : 128;
  if (static_cast<std::uint64_t>(*bits) > most) return std::nullopt;
  return Cidr{*network, static_cast<unsigned>(*bits)};
}

// `Item` is one item of a filter: a name, a prefix or a block of addresses.
struct Item {
  std::string name;
  std::optional<Cidr> cidr;
  bool exact;

  bool takes(const Interface& interface, const SocketAddress& address) const {
    if (cidr) return cidr->contains(address);
    return exact ? interface.name == name : interface.name.starts_with(name);
  }
};

Status no_match(std::span<const Interface> all, const InterfaceFilter& filter) {
  std::string there;
  for (const Interface& interface : all) {
    there += (there.empty() ? "" : ", ") + interface.name;
    for (const SocketAddress& address : interface.addresses) there += " " + address.host();
  }
  return Status(Code::invalid_argument, filter.variable + " is '" + filter.text +
                                            "', which matches no network interface that is up; there are " +
                                            there);
}

// Appends the interface to `chosen`, with only the addresses that `takes` accepts. Does nothing if `takes`
// accepts no address, or if `chosen` already has the interface.
template <class Takes>
void append_matching(const Interface& interface, Takes takes, std::vector<Interface>& chosen) {
  Interface part{interface.name, interface.loopback, {}};
  std::ranges::copy_if(interface.addresses, std::back_inserter(part.addresses), takes);
  if (part.addresses.empty()) return;
  const auto known = std::ranges::find(chosen, interface.name, &Interface::name);
  if (known == chosen.end()) chosen.push_back(std::move(part));
}

Result<std::vector<Interface>> select_filtered(std::span<const Interface> all,
                                               const InterfaceFilter& filter) {
  std::string_view list = filter.text;
  const bool excludes = list.starts_with('^');
  if (excludes) list.remove_prefix(1);
  const bool exact = list.starts_with('=');
  if (exact) list.remove_prefix(1);
  std::vector<Item> items;
  for (const std::string& text : parse_list(list)) {
    const std::optional<Cidr> cidr = parse_cidr(text);
    if (!cidr && text.find('/') != std::string::npos) {
      return Status(Code::invalid_argument, filter.variable + " is '" + filter.text + "': '" + text +
                                                "' is not an address block such as 10.0.0.0/8");
    }
    items.push_back({text, cidr, exact});
  }
  std::vector<Interface> chosen;
  if (excludes) {
    for (const Interface& interface : all) {
      if (interface.loopback) continue;
      append_matching(
          interface,
          [&](const SocketAddress& address) {
            return std::ranges::none_of(items,
                                        [&](const Item& item) { return item.takes(interface, address); });
          },
          chosen);
    }
  }
  for (const Item& item : items) {
    if (excludes) break;
    for (const Interface& interface : all) {
      append_matching(
          interface, [&](const SocketAddress& address) { return item.takes(interface, address); }, chosen);
    }
  }
  if (chosen.empty()) return no_match(all, filter);
  return chosen;
}

bool owns(const Interface& interface, const SocketAddress& route) {
  return std::ranges::any_of(interface.addresses,
                             [&](const SocketAddress& address) { return address.host() == route.host(); });
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    const bool scarce = errno == EMFILE || errno == ENFILE;
    return Status(scarce ? Code::resource_exhausted : Code::internal,
                  "cannot list the network interfaces: " + error_text(errno));
  }
  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, entry->ifa_addr, address.length);
    auto known = std::ranges::find(interfaces, entry->ifa_name, &Interface::name);
    if (known == interfaces.end()) {
      interfaces.push_back({entry->ifa_name, (entry->ifa_flags & IFF_LOOPBACK) != 0, {}});
      known = interfaces.end() - 1;
    }
    known->addresses.push_back(address);
  }
  freeifaddrs(list);
  for (Interface& interface : interfaces) std::ranges::stable_sort(interface.addresses, {}, preference);
  return interfaces;
}

InterfaceFilter interface_filter(const std::string& tutti_socket_ifname) {
  if (!tutti_socket_ifname.empty()) return {tutti_socket_ifname, "TUTTI_SOCKET_IFNAME"};
  for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return {value, name};
  }
  return {};
}

Result<std::vector<Interface>> select_interfaces(std::span<const Interface> all,
                                                 const InterfaceFilter& filter,
                                                 const std::optional<SocketAddress>& route) {
  if (!filter.text.empty()) return select_filtered(all, filter);
  if (route) {
    const auto owner = std::ranges::find_if(all, [&](const Interface& one) { return owns(one, *route); });
    if (owner != all.end() && !is_virtual(*owner)) return std::vector{*owner};
    // The route may be a loopback address that no interface lists, such as 127.0.1.1. In that case the
    // loopback interface is chosen.
    if (route->is_loopback()) {
      const auto loopback = std::ranges::find_if(all, &Interface::loopback);
      if (loopback != all.end()) return std::vector{*loopback};
    }
  }
  const auto usable = [](const Interface& one) {
    return !one.loopback && !is_virtual(one) && !is_link_local(one.addresses.front());
  };
  if (const auto first = std::ranges::find_if(all, usable); first != all.end()) return std::vector{*first};
  if (const auto lo = std::ranges::find_if(all, &Interface::loopback); lo != all.end())
    return std::vector{*lo};
  return Status(Code::unsupported, "no network interface is up, not even loopback");
}

}  // namespace tutti
