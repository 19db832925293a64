// These are the findings about the sizes of packets.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/shown.h"
#include "tools/doctor/findings.h"
#include "tools/doctor/wording.h"

namespace tutti::tools::doctor {
namespace {

// A `Place` is the number of a host and one of its interfaces.
using Place = std::pair<std::size_t, const InterfaceFacts*>;
using Places = std::set<Place>;

// Maps each network to the interfaces through which its hosts have reached each other.
std::map<std::string, Places> find_networks(const Examined& examined) {
  std::map<std::string, Places> networks;
  for (const Connection& connection : examined.connections) {
    const auto& from = examined.hosts[connection.from].facts;
    const auto& to = examined.hosts[connection.to].facts;
    for (const Path& path : connection.paths) {
      if (path.outcome != Outcome::reached || !from || !to) continue;
      const std::string network = network_of(*to, path.to);
      const InterfaceFacts* source = owner_of(*from, path.from);
      // A path from one network to another leads through a router, and is left out.
      if (!is_in(network, path.from) || source == nullptr) continue;
      networks[network].insert({connection.from, source});
      networks[network].insert({connection.to, owner_of(*to, path.to)});
    }
  }
  return networks;
}

std::string text_of(const Examined& examined, const Places& places) {
  std::vector<std::string> texts;
  for (const auto& [host, interface] : places) {
    texts.push_back(examined.hosts[host].name + " (" + interface->name + ")");
  }
  return join(texts);
}

std::string mtu_command(const Places& places, int mtu) {
  return "ip link set dev " + printable(places.begin()->second->name) + " mtu " + std::to_string(mtu);
}

// Returns the advice that changes the fewest interfaces: each interface gets the most common MTU.
std::string mend_mtus(const Examined& examined, const std::map<int, Places>& by_mtu) {
  const auto most = std::ranges::max_element(
      by_mtu, [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::string text;
  for (const auto& [mtu, places] : by_mtu) {
    if (mtu == most->first) continue;
    text +=
        (text.empty() ? "" : "; ") + mtu_command(places, most->first) + " on " + text_of(examined, places);
  }
  if (most->first > by_mtu.begin()->first) text += ", if the switch carries such packets";
  return text;
}

void add_different_mtus(const Examined& examined, std::vector<Finding>& findings) {
  for (const auto& [network, members] : find_networks(examined)) {
    std::map<int, Places> by_mtu;
    for (const Place& place : members) {
      if (place.second->mtu > 0) by_mtu[place.second->mtu].insert(place);
    }
    if (by_mtu.size() < 2) continue;
    std::string text;
    for (const auto& [mtu, places] : by_mtu) {
      text += (text.empty() ? "" : "; ") + std::to_string(mtu) + " on " + text_of(examined, places);
    }
    findings.push_back(
        {.what = "MTU mismatch: the interfaces in " + printable(network) + " have different MTUs: " + text,
         .mend = mend_mtus(examined, by_mtu)});
  }
}

// `Lost` describes packets that vanish: their size, the pairs of hosts, and the interfaces that
// send them.
struct Lost {
  int full = 0;
  std::vector<std::string> pairs;
  Places senders;
};

void add_lost_packets(const Examined& examined, std::vector<Finding>& findings) {
  std::map<int, Lost> by_size;  // the keys are the largest sizes that arrive
  for (const Connection& connection : examined.connections) {
    const ExaminedHost& from = examined.hosts[connection.from];
    for (const Path& path : connection.paths) {
      if (path.outcome != Outcome::reached || path.largest_packet >= path.full_packet) continue;
      Lost& lost = by_size[path.largest_packet];
      lost.full = std::max(lost.full, path.full_packet);
      lost.pairs.push_back(from.name + " -> " + examined.hosts[connection.to].name);
      const InterfaceFacts* sender = from.facts ? owner_of(*from.facts, path.from) : nullptr;
      if (sender != nullptr) lost.senders.insert({connection.from, sender});
    }
  }
  for (const auto& [size, lost] : by_size) {
    const std::string number = std::to_string(size);
    findings.push_back({.what = "MTU of the path: packets of " + std::to_string(lost.full) +
                                " bytes are lost, those of " + number + " arrive: " + join(lost.pairs) +
                                "; a switch or tunnel between them drops larger ones",
                        .mend = (lost.senders.empty() ? ""
                                                      : mtu_command(lost.senders, size) + " on " +
                                                            text_of(examined, lost.senders) + ", or ") +
                                "a larger MTU on the path"});
  }
}

}  // namespace

std::vector<Finding> find_mtus(const Examined& examined) {
  std::vector<Finding> findings;
  add_different_mtus(examined, findings);
  add_lost_packets(examined, findings);
  return findings;
}

}  // namespace tutti::tools::doctor
