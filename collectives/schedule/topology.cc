#include "collectives/schedule/topology.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace tutti {

Topology::Topology(std::span<const int> hosts) {
  std::map<int, int> renumbered;
  std::vector<int> sizes;
  for (const int host : hosts) {
    const auto [entry, is_new] = renumbered.try_emplace(host, static_cast<int>(sizes.size()));
    if (is_new) sizes.push_back(0);
    host_of_.push_back(entry->second);
    place_of_.push_back(sizes[static_cast<std::size_t>(entry->second)]++);
  }
  first_.push_back(0);
  for (const int size : sizes) first_.push_back(first_.back() + static_cast<std::size_t>(size));
  members_.resize(host_of_.size());
  bool in_order = true;
  for (std::size_t rank = 0; rank < host_of_.size(); ++rank) {
    const auto host = static_cast<std::size_t>(host_of_[rank]);
    const std::size_t at = first_[host] + static_cast<std::size_t>(place_of_[rank]);
    members_[at] = static_cast<int>(rank);
    in_order = in_order && at == rank;
  }
  if (sizes.empty()) return;
  const auto [least, largest] = std::minmax_element(sizes.begin(), sizes.end());
  fewest_ = *least;
  most_ = *largest;
  regular_ = in_order && fewest_ == most_;
}

Topology Topology::regular(int hosts, int ranks_per_host) {
  std::vector<int> host_of;
  for (int rank = 0; rank < hosts * ranks_per_host; ++rank) host_of.push_back(rank / ranks_per_host);
  return Topology(host_of);
}

std::span<const int> Topology::members(int host) const {
  const std::size_t first = first_[static_cast<std::size_t>(host)];
  return std::span(members_).subspan(first, first_[static_cast<std::size_t>(host) + 1] - first);
}

std::vector<int> hosts_of(std::span<const PeerInfo> peers) {
  std::map<std::pair<std::string, std::uint64_t>, int> numbers;
  std::vector<int> hosts;
  for (const PeerInfo& peer : peers) {
    const std::pair<std::string, std::uint64_t> key(peer.boot_id, peer.network_namespace);
    hosts.push_back(numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second);
  }
  return hosts;
}

int hosts_per_machine(std::span<const PeerInfo> peers) {
  std::map<std::string, std::set<std::uint64_t>> networks;
  std::size_t most = 1;
  for (const PeerInfo& peer : peers) {
    std::set<std::uint64_t>& of_machine = networks[peer.boot_id];
    of_machine.insert(peer.network_namespace);
    most = std::max(most, of_machine.size());
  }
  return static_cast<int>(most);
}

}  // namespace tutti
