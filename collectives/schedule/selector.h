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
  double seconds = 0;  // that the model expects
};

// `Selector` chooses the algorithm of the least estimated cost among those that apply. It is a pure function
// of values that all ranks agree on, so that all ranks choose alike.
class Selector {
 public:
  // `overrides`: the text of TUTTI_ALGORITHM, "all_reduce:ring,broadcast:binomial"; invalid_argument names
  // an unknown word in it.
  static Result<Selector> create(CostModel model, const std::string& overrides);

  // `algorithm_id` 0: the best, or the override where that applies; otherwise that one, invalid_argument if
  // it does not apply.
  Result<Choice> choose(const Problem& problem, std::uint8_t algorithm_id = 0) const;
  // All that apply, each with its best tuning: those for ranks that share memory first, then the cheapest.
  std::vector<Choice> rank(const Problem& problem) const;
  const CostModel& model() const { return model_; }

 private:
  Choice tuned(const Algorithm& algorithm, const Problem& problem) const;

  CostModel model_;
  std::vector<const Algorithm*> overrides_;
};

// "ring, segments of 64 KiB: 123.4 us"; names only the knobs that the algorithm has.
std::string describe(const Choice& choice);

}  // namespace tutti
