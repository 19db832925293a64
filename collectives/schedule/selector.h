#pragma once

#include <string>
#include <vector>

#include <tutti/status.h>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/cost_model.h"

namespace tutti {

struct Choice {
  const Algorithm* algorithm = nullptr;
  Tuning tuning;
  double seconds = 0;  // estimated by the cost model
};

// `Selector` chooses an algorithm for a problem: an override, or else the algorithm with the least estimated
// cost. Algorithms for ranks that share memory are preferred to all others. The choice depends only on values
// that all ranks agree on, so all ranks make the same choice.
class Selector {
 public:
  // `overrides` is the text of TUTTI_ALGORITHM, such as "all_reduce:ring,broadcast:binomial". If it contains
  // an unknown word, the error (invalid_argument) names it.
  static Result<Selector> create(CostModel model, const std::string& overrides);

  // Returns the algorithm with the id `algorithm_id`, or invalid_argument if it does not apply. If the id is
  // 0, returns the first override that applies, or if no override applies, the best algorithm.
  Result<Choice> choose(const Problem& problem, std::uint8_t algorithm_id = 0) const;
  // Returns all algorithms that apply, each with its best tuning. Algorithms for ranks that share memory come
  // before the others. In either group the cheapest algorithm comes first.
  std::vector<Choice> rank(const Problem& problem) const;
  const CostModel& model() const { return model_; }

 private:
  Choice tuned(const Algorithm& algorithm, const Problem& problem) const;

  CostModel model_;
  std::vector<const Algorithm*> overrides_;
};

// Returns a text like "ring, segments of 64 KiB: 123.4 us", with only the knobs that the algorithm has.
std::string describe(const Choice& choice);

}  // namespace tutti
