#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/problem.h"
#include "collectives/schedule/schedule_builder.h"
#include "collectives/schedule/topology.h"

namespace tutti {

// A `Position` is this rank's place among several hosts. Algorithms that are composed of others need it: some
// of their parts run among the ranks of a host, the rest between hosts. A host's leader is its first rank.
// But if `rooted` is true, the leader of the root's host is the root.
struct Position {
  explicit Position(const Problem& problem, bool rooted = false);
  int local_size() const { return static_cast<int>(local.size()); }
  int leader() const { return leaders[static_cast<std::size_t>(host)]; }
  int leader_place() const { return topology.place_of(leader()); }

  const Topology& topology;
  const int host;
  const int place;
  const std::span<const int> local;
  std::vector<int> leaders;  // by host
};

// Returns whether there are several hosts, and several ranks on at least one of them.
inline bool several_of_both(const Problem& problem) {
  return problem.topology != nullptr && problem.topology->hosts() > 1 && problem.topology->most() > 1;
}

// Returns the problem of one part of the operation: a collective of `kind` over `count` elements among `size`
// of the ranks. `rank` and `root` are numbers among these ranks.
Problem part_of(const Problem& problem, CollectiveKind kind, int rank, int size, int root,
                std::uint64_t count);
// Emits the steps of the algorithm `name` for a part.
void emit_part(ScheduleBuilder& builder, std::string_view name, const Problem& part, const Tuning& tuning);

// Returns the tuning for a part whose data has already been cut into segments.
inline Tuning uncut(Tuning tuning) {
  tuning.segment_bytes = 0;
  return tuning;
}

// `PartCosts` estimates the time of each part of a composition.
class PartCosts {
 public:
  PartCosts(const Problem& problem, const Tuning& tuning, const CostModel& model);
  int local_size() const { return problem_.topology->most(); }
  int hosts() const { return problem_.topology->hosts(); }

  // Returns the cost of a part within the host that has the most ranks. All hosts work at the same time, and
  // this host takes longest.
  double within(CollectiveKind kind, std::string_view name, double elements) const;
  // Returns the cost of a part between hosts. `width` ranks of each host take part at the same time, and
  // share the host's port.
  double between(CollectiveKind kind, std::string_view name, double elements, int width) const;

 private:
  double cost(CollectiveKind kind, std::string_view name, int size, double elements,
              const CostModel& model) const;

  const Problem& problem_;
  const Tuning& tuning_;
  CostModel within_;
  CostModel between_;
};

}  // namespace tutti
