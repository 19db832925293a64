#include "control/liveness/ring.h"

#include <algorithm>

namespace tutti::liveness {
namespace {

std::size_t place_of(const std::vector<int>& present, int rank) {
  return static_cast<std::size_t>(std::ranges::lower_bound(present, rank) - present.begin());
}

std::size_t distance(const std::vector<int>& present, int a, int b) {
  const std::size_t from = place_of(present, a), to = place_of(present, b);
  const std::size_t apart = from < to ? to - from : from - to;
  return std::min(apart, present.size() - apart);
}

}  // namespace

std::vector<int> neighbours(const std::vector<int>& present, int rank) {
  const std::size_t size = present.size(), own = place_of(present, rank);
  std::vector<int> found;
  for (std::size_t step = 1; step < size; step *= 2) {
    found.push_back(present[(own + step) % size]);
    found.push_back(present[(own + size - step) % size]);
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

int next_hop(const std::vector<int>& present, int target, const std::vector<int>& linked) {
  const auto nearest = std::ranges::min_element(
      linked, {}, [&](int candidate) { return distance(present, candidate, target); });
  return nearest == linked.end() ? -1 : *nearest;
}

}  // namespace tutti::liveness
