#include "collectives/group/members.h"

#include <utility>

namespace tutti {

namespace {

Topology topology_among(const Topology& world, const std::vector<int>& ranks) {
  std::vector<int> hosts;
  for (const int rank : ranks) hosts.push_back(world.host_of(rank));
  return Topology(hosts);
}

}  // namespace

Members::Members(const Mesh& mesh, const Topology& world, std::vector<int> world_ranks)
    : mesh_(mesh),
      world_ranks_(std::move(world_ranks)),
      ranks_(static_cast<std::size_t>(mesh.size()), -1),
      topology_(topology_among(world, world_ranks_)) {
  for (std::size_t i = 0; i < world_ranks_.size(); ++i)
    ranks_[static_cast<std::size_t>(world_ranks_[i])] = static_cast<int>(i);
  rank_ = rank_of(mesh.rank());
}

std::string Members::describe(int rank) const { return describe_world_rank(world_rank(rank)); }

}  // namespace tutti
