#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "collectives/schedule/topology.h"
#include "transport/mesh/mesh.h"

namespace tutti {

// `Members` lists a communicator's ranks: the world rank, the host and the process of each.
class Members {
 public:
  // `world_ranks` are the world ranks of the members, in the order of their ranks in the communicator.
  // `world` says on which host each rank of the world is.
  Members(const Mesh& mesh, const Topology& world, std::vector<int> world_ranks);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(world_ranks_.size()); }
  int own_world_rank() const { return mesh_.rank(); }
  const std::vector<int>& world_ranks() const { return world_ranks_; }
  int world_rank(int rank) const { return world_ranks_[static_cast<std::size_t>(rank)]; }
  // `contains` returns whether a rank of the world is a member; `rank_of` returns its rank in the
  // communicator, or -1.
  bool contains(int world_rank) const {
    return world_rank >= 0 && world_rank < std::ssize(ranks_) && rank_of(world_rank) >= 0;
  }
  int rank_of(int world_rank) const { return ranks_[static_cast<std::size_t>(world_rank)]; }
  const Topology& topology() const { return topology_; }
  // Returns a member's name for messages.
  std::string describe(int rank) const;
  std::string describe_this_rank() const { return describe(rank_); }
  std::string describe_world_rank(int world_rank) const { return mesh_.peer(world_rank).describe(); }

 private:
  const Mesh& mesh_;
  const std::vector<int> world_ranks_;
  std::vector<int> ranks_;  // by world rank; -1: not a member
  int rank_ = 0;
  const Topology topology_;
};

}  // namespace tutti
