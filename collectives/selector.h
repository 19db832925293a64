#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tutti/collectives/algorithm.h>
#include <tutti/core/status.h>

namespace tutti {

// The cost of a message of n bytes between two ranks is alpha + n * beta; combining n bytes costs n * gamma.
struct CostModel {
  double alpha = 20e-6;   // seconds a message
  double beta = 0.4e-9;   // seconds a byte
  double gamma = 0.1e-9;  // seconds a byte
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  Tuning tuning;
  double seconds = 0;  // what the model expects
};

// Chooses by estimated cost, among what applies. A pure function of values that all ranks agree on, so that all
// ranks choose alike.
class Selector {
 public:
  // `overrides`: the text of TUTTI_ALGORITHM, "all_reduce:ring,broadcast:binomial"; invalid_argument names what is
  // unknown in it.
  static Result<Selector> create(CostModel model, const std::string& overrides);

  // `algorithm_id` 0: the best, or the override; otherwise that one, invalid_argument if it does not apply.
  Result<Choice> choose(const Problem& problem, std::uint8_t algorithm_id = 0) const;
  // All that apply, cheapest first.
  std::vector<Choice> rank(const Problem& problem) const;
  const CostModel& model() const { return model_; }

 private:
  CostModel model_;
  std::vector<const Algorithm*> overrides_;
};

}  // namespace tutti
