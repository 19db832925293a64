#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "transport/peer.h"

namespace tutti {

// `Topology` says which ranks of a group are on the same host. It is immutable, and equal on all ranks, since
// it is made from the descriptions of peers that all ranks received at init.
class Topology {
 public:
  // `hosts` has a number for each rank; ranks of one host have equal numbers. Hosts are renumbered in the
  // order of their first ranks.
  explicit Topology(std::span<const int> hosts);
  // Returns a topology of `hosts` hosts with `ranks_per_host` consecutive ranks each.
  static Topology regular(int hosts, int ranks_per_host);

  int size() const { return static_cast<int>(host_of_.size()); }
  int hosts() const { return static_cast<int>(first_.size()) - 1; }
  int host_of(int rank) const { return host_of_[static_cast<std::size_t>(rank)]; }
  // Returns a rank's place among the ranks of its host.
  int place_of(int rank) const { return place_of_[static_cast<std::size_t>(rank)]; }
  // Returns the ranks of a host, ascending.
  std::span<const int> members(int host) const;
  // These two functions return the number of ranks on the host with the fewest ranks, and on the host with
  // the most.
  int fewest() const { return fewest_; }
  int most() const { return most_; }
  // Returns whether every host has the same number of ranks, and the ranks of each host are consecutive.
  bool regular() const { return regular_; }

 private:
  std::vector<int> host_of_;
  std::vector<int> place_of_;
  std::vector<int> members_;        // grouped by host
  std::vector<std::size_t> first_;  // where each host's ranks begin in `members_`; the last entry is its size
  int fewest_ = 0;
  int most_ = 0;
  bool regular_ = false;
};

// Returns for each rank the number of its host. Two ranks are on the same host if they have the same boot id
// (of the running kernel) and the same network namespace.
std::vector<int> hosts_of(std::span<const PeerInfo> peers);

// Returns the largest number of hosts that share a kernel, and therefore share the cores of a machine. It is
// 1 unless the ranks run in containers that have separate networks.
int hosts_per_machine(std::span<const PeerInfo> peers);

}  // namespace tutti
