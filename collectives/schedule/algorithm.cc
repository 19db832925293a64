#include "collectives/schedule/algorithm.h"

#include "collectives/schedule/algorithms/families.h"
#include "collectives/schedule/algorithms/layout.h"

namespace tutti {
namespace {

std::vector<Algorithm> all_families() {
  std::vector<Algorithm> all;
  for (const auto family :
       {all_reduce_algorithms(), reduce_algorithms(), broadcast_algorithms(), all_gather_algorithms(),
        reduce_scatter_algorithms(), all_to_all_algorithms(), gather_algorithms(), scatter_algorithms(),
        scan_algorithms(), barrier_algorithms(), two_level_algorithms(), shared_algorithms(),
        registered_algorithms()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

// Returns the part of the output that is this rank's result.
Slice result_of(const Problem& problem) {
  const bool untouched = problem.kind == CollectiveKind::exscan && problem.rank == 0;
  return output(0, untouched ? 0 : output_count(problem));
}

// Emits a dissemination (see barrier.cc). When it has ended, every rank knows that all ranks'
// reductions have succeeded.
void agree(ScheduleBuilder& builder, const Problem& problem) {
  for (int distance = 1; distance < problem.size; distance *= 2) {
    builder.settle();
    builder.send((problem.rank + distance) % problem.size, {});
    builder.recv((problem.rank + problem.size - distance) % problem.size, {});
  }
}

}  // namespace

std::span<const Algorithm> algorithms() {
  static const std::vector<Algorithm> all = all_families();
  return all;
}

const Algorithm* find_algorithm(CollectiveKind kind, std::string_view name) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind == kind && algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

const Algorithm* find_algorithm(std::uint8_t id) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.id == id) return &algorithm;
  }
  return nullptr;
}

std::string describe(const Fingerprint& call) {
  const Algorithm* algorithm = find_algorithm(call.algorithm);
  return to_string(call, algorithm == nullptr ? std::string_view() : algorithm->name);
}

std::string algorithm_names(CollectiveKind kind) {
  std::string names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind == kind) names += (names.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  return names;
}

Schedule build_schedule(const Algorithm& algorithm, const Problem& problem, const Tuning& tuning) {
  ScheduleBuilder builder(problem);
  if (algorithm.shared) builder.share();
  Problem inner = problem;
  const bool reducing = is_reduction(problem.kind);
  if (reducing && problem.premultiplied) {
    const Slice raw = input(0, input_count(problem));
    const Slice scaled = builder.scratch(raw.count);
    const Segments segments(problem, tuning, raw.count, 2);
    for (std::uint64_t i = 0; i < segments.count(raw); ++i) {
      builder.scale(segments.at(raw, i), segments.at(scaled, i));
    }
    builder.redirect_input(scaled);
    inner.in_place = false;
  }
  algorithm.emit(builder, inner, tuning);
  if (reducing && problem.average) {
    const Slice result = result_of(problem);
    const Segments segments(problem, tuning, result.count, 2);
    for (std::uint64_t i = 0; i < segments.count(result); ++i) {
      builder.divide(segments.at(result, i), segments.at(result, i));
    }
  }
  if (problem.agrees && !algorithm.shared) agree(builder, problem);
  return std::move(builder).finish();
}

}  // namespace tutti
