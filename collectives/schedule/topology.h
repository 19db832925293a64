#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "transport/peer.h"

namespace tutti {

// `Topology` says which ranks of a group are on one host. It is immutable, and equal on all ranks, since it
// is made from the descriptions of peers that all ranks got at init.
class Topology {
 public:
  // `hosts`: by rank, any numbers that are equal for ranks of one host. Hosts are renumbered in the order of
  // their first ranks.
  explicit Topology(std::span<const int> hosts);
  // `hosts` hosts with `ranks_per_host` consecutive ranks each.
  static Topology regular(int hosts, int ranks_per_host);

  int size() const { return static_cast<int>(host_of_.size()); }
  int hosts() const { return static_cast<int>(first_.size()) - 1; }
  int host_of(int rank) const { return host_of_[static_cast<std::size_t>(rank)]; }
  // Returns a rank's place among the ranks of its host.
  int place_of(int rank) const { return place_of_[static_cast<std::size_t>(rank)]; }
  // The ranks of a host, ascending.
  std::span<const int> members(int host) const;
  // Ranks on the host with the fewest, and with the most.
  int fewest() const { return fewest_; }
  int most() const { return most_; }
  // Returns whether every host has the same number of ranks, and its ranks follow each other.
  bool regular() const { return regular_; }

 private:
  std::vector<int> host_of_;
  std::vector<int> place_of_;
  std::vector<int> members_;        // grouped by host
  std::vector<std::size_t> first_;  // of each host in `members_`, and the end
  int fewest_ = 0;
  int most_ = 0;
  bool regular_ = false;
};

// For each rank a number for the host that it is on. Ranks are on one host if they share the running kernel
// and the network: boot id and network namespace.
std::vector<int> hosts_of(std::span<const PeerInfo> peers);

}  // namespace tutti
