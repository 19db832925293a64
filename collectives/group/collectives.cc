#include "collectives/group/collectives.h"

#include <utility>

namespace tutti {

Collectives::Collectives(std::uint32_t context, World& world, const Members& members, Failure& failure,
                         Journal& journal, LiveOperations& live, SharedCollectives& shared,
                         const Registry& registry, Gate& gate, Arbitration& arbitration)
    : context_(context),
      part_of_(world.part_of),
      members_(members),
      mesh_(*world.mesh),
      failure_(failure),
      journal_(journal),
      live_(live),
      shared_(shared),
      registry_(registry),
      gate_(gate),
      arbitration_(arbitration),
      cache_(world.selector),
      habits_(context, members, mesh_, journal, live, shared, gate, *this) {}

Work Collectives::issue(const Call& call, const Problem& asked, const Fingerprint& asked_print,
                        const CallOptions& options) {
  Fingerprint print = asked_print;
  if (print.part_of == Composite::none) print.part_of = part_of_;
  Problem problem = asked;
  problem.window_bytes = shared_.window_bytes();
  // A habit does not remember which composite call it belongs to, so parts of those go the long way.
  if (print.part_of == Composite::none) {
    if (Work work; habits_.attempt(call, problem, print, options, work)) return work;
  }
  // The number is taken first: also an operation that fails here has its place in the order.
  const std::uint64_t number = journal_.number_collective();
  Result<std::shared_ptr<CachedSchedule>> schedule = cache_.get(problem, print.algorithm);
  if (!schedule.ok()) return live_.refuse(print, schedule.status());
  Operation& operation = *live_.make(*this, Operation::Kind::collective, print, options);
  operation.sequence = number;
  operation.algorithm = (*schedule)->algorithm();
  operation.bind(call, context_, mesh_, members_.world_ranks());
  if (!(*schedule)->schedule().shared) {
    operation.run = (*schedule)->lease();
    return gate_.launch(operation);
  }
  operation.shared_schedule = std::move(schedule).take();
  shared_.bind(operation, problem, cache_, registry_);
  if (!operation.shared.votes && !problem.agrees && print.algorithm == 0) habits_.form(operation, problem);
  return gate_.launch(operation);
}

void Collectives::start(Operation& operation) {
  mesh_.on_issued(context_, operation.sequence);
  if (failure_.happened() || arbitration_.is_open()) return;
  if (operation.is_shared()) {
    if (shared_.executor()->submit(operation.shared)) on_part_over(operation, Status());
  } else {
    operation.run->start(operation.binding);
  }
}

// A failure that was noted while the last messages came in counts: acting on it ends the operation.
void Collectives::on_part_over(Operation& operation, const Status& status) {
  if (status.ok() && !failure_.happened()) return live_.end(operation, status);
  if (status.code() == Code::mismatch && !operation.run)
    arbitration_.on_mismatch_on_board(&operation, status);
  if (operation.binding.reducer.failed()) {
    failure_.suspect(Status(Code::aborted, members_.describe_this_rank() + ": " + status.message(),
                            members_.own_world_rank()));
  } else if (status.code() != Code::mismatch || !arbitration_.is_open()) {  // else the verdict is the cause
    failure_.suspect(status);
  }
}

void Collectives::cancel(Operation& operation, const Status& why) {
  if (!operation.is_shared()) operation.run->cancel(why);
  live_.end(operation, why);
}

std::vector<int> Collectives::awaited(const Operation& operation) const {
  std::vector<int> ranks = operation.is_shared() ? shared_.executor()->awaited() : operation.run->awaited();
  for (int& rank : ranks) rank = members_.world_rank(rank);
  return ranks;
}

std::string Collectives::name_awaited(const Operation& operation) const {
  std::string names;
  for (const int rank : awaited(operation))
    names += (names.empty() ? "" : ", ") + members_.describe_world_rank(rank);
  return names;
}

}  // namespace tutti
