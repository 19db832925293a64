#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/problem.h"
#include "collectives/schedule/schedule_builder.h"
#include "core/fingerprint.h"

namespace tutti {

// An `Algorithm` implements one kind of collective. `emit` and `cost` are pure functions of their arguments.
struct Algorithm {
  std::uint8_t id;        // unique, not 0, stable: travels in fingerprints
  std::string_view name;  // "ring", "recursive_doubling", ...; unique within a kind
  CollectiveKind kind;
  bool rank_order;  // combines strictly in rank order: fit for non-commutative operations
  unsigned knobs;   // the fields of Tuning that make a difference to it: a sum of Knob
  // Whether it can solve this problem (besides `rank_order`); depends only on values that all ranks know.
  bool (*applies)(const Problem& problem);
  // Estimated seconds until the last rank has finished, in closed form; must not look at `problem.rank`.
  double (*cost)(const Problem& problem, const Tuning& tuning, const CostModel& model);
  void (*emit)(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning);
  bool shared = false;  // makes shared schedules; `applies` asks for a window
};

enum Knob : std::uint8_t { radix_knob = 1, segment_knob = 2, window_knob = 4 };

// Every algorithm.
std::span<const Algorithm> algorithms();
// Finds an algorithm by kind and name, or by id; null if there is none.
const Algorithm* find_algorithm(CollectiveKind kind, std::string_view name);
const Algorithm* find_algorithm(std::uint8_t id);
// Describes a call for errors, dumps and traces: the user's own call, with the algorithm that it names.
std::string describe(const Fingerprint& call);
// The names of all of that kind, for errors: "recursive_doubling, ring".
std::string algorithm_names(CollectiveKind kind);

// The complete schedule: scaling before and dividing after are added around what the algorithm emits.
Schedule build_schedule(const Algorithm& algorithm, const Problem& problem, const Tuning& tuning);

}  // namespace tutti
