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
  std::uint8_t id;        // unique, not 0; never changes, since fingerprints contain it
  std::string_view name;  // "ring", "recursive_doubling", ...; unique within a kind
  CollectiveKind kind;
  bool rank_order;  // combines strictly in rank order, so it suits non-commutative operations
  unsigned knobs;   // the fields of Tuning that it uses: a sum of `Knob` values
  // Returns whether the algorithm can solve this problem. Does not consider `rank_order`. Depends only on
  // values that all ranks know.
  bool (*applies)(const Problem& problem);
  // Returns a closed-form estimate of the seconds until the last rank has finished. It must not look at
  // `problem.rank`.
  double (*cost)(const Problem& problem, const Tuning& tuning, const CostModel& model);
  void (*emit)(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning);
  bool shared = false;  // makes shared schedules; `applies` requires a window
};

enum Knob : std::uint8_t { radix_knob = 1, segment_knob = 2, window_knob = 4 };

// Returns every algorithm.
std::span<const Algorithm> algorithms();
// Finds an algorithm by kind and name, or by id; null if there is none.
const Algorithm* find_algorithm(CollectiveKind kind, std::string_view name);
const Algorithm* find_algorithm(std::uint8_t id);
// Describes a call for errors, dumps and traces: the user's own call, and the algorithm if the call names
// one.
std::string describe(const Fingerprint& call);
// Returns the names of all algorithms for `kind`, for use in errors: "recursive_doubling, ring".
std::string algorithm_names(CollectiveKind kind);

// Returns the complete schedule: the steps of the algorithm, with scaling before them, and with dividing and
// an agreement after them, as the problem requires.
Schedule build_schedule(const Algorithm& algorithm, const Problem& problem, const Tuning& tuning);

}  // namespace tutti
