#include "tests/unit/collectives/proof_cases.h"

#include <set>

namespace tutti::test {

void Variant::apply(Problem& problem) const {
  problem.commutative = commutative;
  problem.average = average;
  problem.premultiplied = premultiplied;
}

std::vector<Variant> variants_for(const Algorithm& algorithm) {
  std::vector<Variant> variants(1);
  if (!is_reduction(algorithm.kind)) return variants;
  variants.push_back({true, true, true});
  variants.push_back({true, true, false});
  if (algorithm.rank_order) {
    variants.push_back({false, false, false});
    variants.push_back({false, false, true});
  }
  return variants;
}

std::vector<int> roots_for(CollectiveKind kind, int size) {
  if (!has_root(kind)) return {0};
  const std::set<int> roots = {0, size / 2, size - 1};
  return {roots.begin(), roots.end()};
}

bool has_blocks(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::scan:
    case CollectiveKind::exscan:
    case CollectiveKind::barrier:
      return false;
    default:
      return true;
  }
}

}  // namespace tutti::test
