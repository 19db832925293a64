#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

// `Random` gives the same numbers for the same seed on every machine. std::shuffle and
// std::uniform_real_distribution do not guarantee this.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // Returns a number between -limit and limit.
  float uniform(float limit) { return limit * (2 * (static_cast<float>(engine_() >> 40) * 0x1p-24f) - 1); }

  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[engine_() % i]);
  }

 private:
  std::mt19937_64 engine_;
};
