#include "tests/prove/expressions.h"

namespace tutti::test {
namespace {

// Mixes the bits of `x`. The code is the last step of the random number generator SplitMix64.
std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

enum : std::uint64_t {
  leaf_kind = 1ull << 60,
  combine_kind = 2ull << 60,
  scale_kind = 3ull << 60,
  divide_kind = 4ull << 60
};

}  // namespace

std::uint64_t Expressions::mark(int rank) {
  return scramble(static_cast<std::uint64_t>(rank) + 0x9e3779b97f4a7c15u);
}

std::size_t Expressions::Hash::operator()(const Key& key) const {
  return scramble(key.kind_and_left * 0x9e3779b97f4a7c15u + key.right);
}

Expressions::Id Expressions::intern(const Key& key, const Summary& summary) {
  const auto [entry, inserted] = ids_.try_emplace(key, static_cast<Id>(summaries_.size()));
  if (inserted) summaries_.push_back(summary);
  return entry->second;
}

Expressions::Id Expressions::leaf(int rank, std::uint64_t element) {
  return intern({leaf_kind | static_cast<std::uint64_t>(rank), element},
                {element, mark(rank), 1, rank, false, false});
}

Expressions::Id Expressions::combine(Id left, Id right) {
  if (left <= wrong || right <= wrong) return wrong;
  const Summary a = summaries_[left];
  const Summary b = summaries_[right];
  if (a.element != b.element || a.scaled != b.scaled || a.divided || b.divided) return wrong;
  Summary both = a;
  both.ranks += b.ranks;
  both.leaves += b.leaves;
  const bool adjoining = a.first >= 0 && b.first == a.first + static_cast<std::int32_t>(a.leaves);
  if (!adjoining) both.first = -1;
  return intern({combine_kind | left, right}, both);
}

Expressions::Id Expressions::scale(Id of) {
  if (of <= wrong || summaries_[of].scaled || summaries_[of].leaves != 1) return wrong;
  Summary scaled = summaries_[of];
  scaled.scaled = true;
  return intern({scale_kind | of, 0}, scaled);
}

Expressions::Id Expressions::divide(Id of) {
  if (of <= wrong || summaries_[of].divided) return wrong;
  Summary divided = summaries_[of];
  divided.divided = true;
  return intern({divide_kind | of, 0}, divided);
}

}  // namespace tutti::test
