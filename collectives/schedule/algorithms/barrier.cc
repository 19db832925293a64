#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

namespace tutti {
namespace {

// Emits the dissemination of Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988),
// for any radix k. After the round of distance d, a rank knows that k * d ranks have called the barrier:
// itself and those before it. Cost for p ranks: ceil(log_k p) rounds of k-1 empty messages.
void dissemination(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int p = problem.size;
  const int k = radix_of(tuning);
  for (int distance = 1; distance < p; distance *= k) {
    for (int j = 1; j < k && j * distance < p; ++j) builder.send(shifted(problem.rank, j * distance, p), {});
    for (int j = 1; j < k && j * distance < p; ++j) builder.recv(shifted(problem.rank, -j * distance, p), {});
    builder.fence();
  }
}

double dissemination_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  const int k = radix_of(tuning);
  double seconds = 0;
  for (int distance = 1; distance < problem.size; distance *= k) {
    seconds += terms.burst(std::min(k - 1, (problem.size - 1) / distance), 0, terms.shift(distance));
  }
  return seconds;
}

constexpr std::array family = {
    Algorithm{150, "dissemination", CollectiveKind::barrier, true, radix_knob, always, dissemination_cost,
              dissemination},
};

}  // namespace

std::span<const Algorithm> barrier_algorithms() { return family; }

}  // namespace tutti
