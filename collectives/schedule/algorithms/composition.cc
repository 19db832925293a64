#include "collectives/schedule/algorithms/composition.h"

#include <algorithm>
#include <cassert>

namespace tutti {

Position::Position(const Problem& problem, bool rooted)
    : topology(*problem.topology),
      host(topology.host_of(problem.rank)),
      place(topology.place_of(problem.rank)),
      local(topology.members(host)) {
  for (int h = 0; h < topology.hosts(); ++h) leaders.push_back(topology.members(h).front());
  if (rooted) leaders[static_cast<std::size_t>(topology.host_of(problem.root))] = problem.root;
}

Problem part_of(const Problem& problem, CollectiveKind kind, int rank, int size, int root,
                std::uint64_t count) {
  Problem part;
  part.kind = kind;
  part.rank = rank;
  part.size = size;
  part.root = root;
  part.count = count;
  part.element_size = problem.element_size;
  return part;
}

void emit_part(ScheduleBuilder& builder, std::string_view name, const Problem& part, const Tuning& tuning) {
  const Algorithm* algorithm = find_algorithm(part.kind, name);
  assert(algorithm != nullptr);
  algorithm->emit(builder, part, tuning);
}

PartCosts::PartCosts(const Problem& problem, const Tuning& tuning, const CostModel& model)
    : problem_(problem), tuning_(tuning), within_(model), between_(model) {
  between_.near = model.far;
  within_.far = model.near;
}

double PartCosts::within(CollectiveKind kind, std::string_view name, double elements) const {
  return cost(kind, name, local_size(), elements, within_);
}

double PartCosts::between(CollectiveKind kind, std::string_view name, double elements, int width) const {
  CostModel model = between_;
  model.near.beta *= width;
  if (model.cores != 0) model.cores = std::max(1, model.cores * hosts() / width);
  return cost(kind, name, hosts(), elements, model);
}

double PartCosts::cost(CollectiveKind kind, std::string_view name, int size, double elements,
                       const CostModel& model) const {
  if (size < 2) return 0;
  const Problem part = part_of(problem_, kind, 0, size, 0, static_cast<std::uint64_t>(elements));
  return find_algorithm(kind, name)->cost(part, uncut(tuning_), model);
}

}  // namespace tutti
