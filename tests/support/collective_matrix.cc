#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <set>
#include <tuple>

#include "tests/support/collective_case.h"

namespace tutti::test {

using Kind = CollectiveKind;

namespace {

std::vector<ReduceOp> operations_for(const CollectiveCase& test) {
  if (!is_reduction(test.kind)) return {ReduceOp::sum};
  std::vector<ReduceOp> all = {ReduceOp::sum,    ReduceOp::product, ReduceOp::min,
                               ReduceOp::max,    ReduceOp::avg,     ReduceOp::bit_and,
                               ReduceOp::bit_or, ReduceOp::bit_xor, ReduceOp::premultiplied_sum(2),
                               last_nonzero()};
  std::erase_if(all, [&](const ReduceOp& op) { return !op.supports(test.type); });
  // Averages are left out. In a scan, the average of a prefix of the ranks is the sum divided by
  // the world size, and programs rarely want such results.
  if (test.kind == Kind::scan || test.kind == Kind::exscan) {
    std::erase_if(all, [](const ReduceOp& op) { return op.kind() == ReduceOp::Kind::avg; });
  }
  return all;
}

}  // namespace

bool test_all() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::getenv("TEST_ALL") != nullptr;
#else
  return true;
#endif
}

std::vector<CollectiveCase> collective_matrix(int size) {
  std::vector<CollectiveCase> cases;
  std::size_t turn = 0;
  const std::vector<std::uint64_t> counts = {1, 17, 0, 640};
  for (int k = 0; k < collective_kind_count; ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    if (kind == Kind::send || kind == Kind::recv) continue;
    for (int t = 0; t < data_type_count; ++t) {
      CollectiveCase test;
      test.kind = kind;
      test.type = static_cast<DataType>(t);
      const std::vector<ReduceOp> ops = operations_for(test);
      for (const ReduceOp& op : ops) {
        test.op = op;
        ++turn;
        test.root = static_cast<int>(turn % static_cast<std::size_t>(size));
        for (const bool in_place : {false, true}) {
          if (in_place && !has_in_place(kind)) continue;
          test.in_place = in_place;
          test.count = counts[(turn + (in_place ? 1 : 0)) % counts.size()];
          cases.push_back(test);
        }
      }
    }
  }
  return cases;
}

std::vector<CollectiveCase> paired_matrix(int size) {
  std::vector<CollectiveCase> cases = collective_matrix(size);
  // Every size has a different order. So different sizes test different combinations of three or
  // more properties.
  std::shuffle(cases.begin(), cases.end(), std::mt19937(static_cast<unsigned>(size)));
  std::set<std::tuple<std::size_t, std::uint64_t, std::size_t, std::uint64_t>> covered;
  std::erase_if(cases, [&](const CollectiveCase& test) {
    const std::array<std::uint64_t, 5> properties = {
        static_cast<std::uint64_t>(test.kind), static_cast<std::uint64_t>(test.type),
        static_cast<std::uint64_t>(test.op.kind()), test.count, test.in_place ? 1u : 0u};
    bool anew = false;
    for (std::size_t i = 0; i < properties.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) anew |= covered.insert({i, properties[i], j, properties[j]}).second;
    }
    return !anew;
  });
  return cases;
}

std::vector<CollectiveCase> tested_matrix(int size) {
  return test_all() ? collective_matrix(size) : paired_matrix(size);
}

}  // namespace tutti::test
