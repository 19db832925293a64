#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <tutti/collectives/problem.h>
#include <tutti/collectives/schedule_builder.h>

namespace tutti {

// One way to carry out one kind of collective. `emit` is a pure function of its arguments.
struct Algorithm {
  std::uint8_t id;         // unique, never 0, stable: travels in fingerprints
  std::string_view name;   // "ring", "recursive_doubling", ...; unique within a kind
  CollectiveKind kind;
  bool rank_order;         // combines strictly in rank order: fit for non-commutative operations
  // Whether it can do this problem at all (besides `rank_order`); depends only on what all ranks know.
  bool (*applies)(const Problem& problem);
  void (*emit)(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning);
};

// Every algorithm, grouped by kind.
std::span<const Algorithm> algorithms();
// By kind and name, or by id; null if there is none.
const Algorithm* find_algorithm(CollectiveKind kind, std::string_view name);
const Algorithm* find_algorithm(std::uint8_t id);

// The complete schedule: scaling before and dividing after are added around what the algorithm emits.
Schedule build_schedule(const Algorithm& algorithm, const Problem& problem, const Tuning& tuning);

}  // namespace tutti
