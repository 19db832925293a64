#include "collectives/group/collectives.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "collectives/schedule/algorithm.h"

namespace tutti {

namespace {

// Returns the id of the algorithm that the options name; 0 if they name none.
Result<std::uint8_t> requested_algorithm(CollectiveKind kind, const CallOptions& options) {
  if (options.region != nullptr) return useless_region();
  if (options.algorithm.empty()) return std::uint8_t{0};
  if (const Algorithm* found = find_algorithm(kind, options.algorithm)) return found->id;
  return Status(Code::invalid_argument, "no algorithm \"" + std::string(options.algorithm) + "\" for " +
                                            std::string(to_string(kind)) +
                                            "; it has: " + algorithm_names(kind));
}

// Returns whether a call has options other than a time limit, has device memory, or may be carried out by a
// library. The test takes few instructions, since even the smallest calls need it.
bool is_special(const CallOptions& options, const Fingerprint& print, std::size_t host_libraries) {
  const std::size_t any = options.algorithm.size() | reinterpret_cast<std::uintptr_t>(options.stream) |
                          reinterpret_cast<std::uintptr_t>(options.region) | host_libraries;
  return any != 0 || print.on_device;
}

}  // namespace

Collectives::Collectives(const Parts& parts, const Selector& selector, const Registry& registry,
                         Arbitration& arbitration, Offloading& offloading)
    : parts_(parts),
      registry_(registry),
      arbitration_(arbitration),
      offloading_(offloading),
      cache_(selector),
      habits_(parts, *this),
      offloaded_(parts, offloading, cache_, *this,
                 [this](const Call& call, const CallOptions& options) { return issue(call, options); }) {}

Work Collectives::issue(const Call& call, const CallOptions& options) {
  const Members& members = parts_.members;
  Fingerprint print = fingerprint(call, members.rank(), members.size());
  if (print.part_of == Composite::none) print.part_of = parts_.part_of;
  if (parts_.gate.is_forked()) return parts_.live.refuse(print, forked_child());
  Result<Problem> problem = check(call, members.rank(), members.size());
  if (!problem.ok()) return parts_.live.refuse(print, problem.status());
  problem->topology = &members.topology();
  problem->window_bytes = parts_.shared.window_bytes();
  if (is_special(options, print, offloading_.host_libraries()))
    return issue_specially(call, *problem, print, options);
  return issue_checked(call, *problem, print, options);
}

Work Collectives::issue_checked(const Call& call, const Problem& problem, const Fingerprint& print,
                                const CallOptions& options) {
  // A habit (see Habits) does not remember whether its call is part of a composite call. So only
  // calls that are not part of a composite call use habits.
  if (print.part_of == Composite::none) {
    if (Work work; habits_.attempt(call, problem, print, options, work)) return work;
  }
  // The call takes its number before anything can fail, so that a failed call still has its place in the
  // order.
  const std::uint64_t number = parts_.journal.number_collective();
  Result<std::shared_ptr<CachedSchedule>> schedule = cache_.get(problem, print.algorithm);
  if (!schedule.ok()) return parts_.live.refuse(print, schedule.status());
  Operation& operation = *parts_.live.make(*this, Operation::Kind::collective, print, options);
  operation.sequence = number;
  operation.algorithm = (*schedule)->algorithm();
  operation.bind(call, parts_.context, parts_.mesh, parts_.members.world_ranks());
  if (!(*schedule)->schedule().shared) {
    operation.run = (*schedule)->lease();
    operation.execution = operation.run.get();
    return parts_.gate.launch(operation);
  }
  operation.shared_schedule = std::move(schedule).take();
  parts_.shared.bind(operation, problem, cache_, registry_);
  if (!operation.shared.run.votes && !problem.agrees && print.algorithm == 0)
    habits_.form(operation, problem);
  return parts_.gate.launch(operation);
}

// If a library fits, it carries out the call. Calls that name an algorithm never go to a library.
// tutti's own calls do not either, since they must work without any library. Without a library, the
// ordinary algorithms carry out a call that is on host memory and has no stream. All other calls
// are refused.
Work Collectives::issue_specially(const Call& call, const Problem& problem, Fingerprint print,
                                  const CallOptions& options) {
  const Result<std::uint8_t> algorithm = requested_algorithm(call.kind, options);
  if (!algorithm.ok()) return parts_.live.refuse(print, algorithm.status());
  print.algorithm = *algorithm;
  const bool own = print.algorithm != 0 || print.part_of != Composite::none;
  Library* const library = own ? nullptr : offloading_.choose(print);
  if (library != nullptr) return offloaded_.issue(call, print, options, *library);
  if (options.stream == nullptr && !print.on_device) return issue_checked(call, problem, print, options);
  const std::string why = own ? "the call names an algorithm" : offloading_.why_none(print);
  if (options.stream != nullptr) return parts_.live.refuse(print, useless_stream(why));
  return offloaded_.refuse_together(call, print, options, useless_memory(why));
}

void Collectives::start(Operation& operation) {
  parts_.mesh.on_issued(parts_.context, operation.sequence);
  if (!parts_.failure.happened() && !arbitration_.is_open()) operation.execute();
}

// If a failure was noted while the last messages arrived, the operation does not end here. It is given up
// when the failure takes effect.
void Collectives::on_finished(Operation& operation, const Status& status) {
  if (operation.ending || !parts_.failure.happened()) parts_.live.end(operation, status);
}

void Collectives::on_failed(Operation& operation, const Status& why) {
  if (why.code() == Code::mismatch) arbitration_.on_mismatch_on_board(&operation, why);
  if (operation.binding.reducer.failed()) {
    parts_.failure.suspect(Status(Code::aborted, parts_.members.describe_this_rank() + ": " + why.message(),
                                  parts_.members.own_world_rank()));
  } else if (why.code() != Code::mismatch || !arbitration_.is_open()) {
    // A mismatch is not reported during a dispute, since the verdict will be reported instead.
    parts_.failure.suspect(why);
  }
}

}  // namespace tutti
