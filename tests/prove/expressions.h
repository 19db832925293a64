#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tutti::test {

// `Expressions` are shared expression trees. Their leaves are contributions: input elements of ranks. Equal
// trees have equal ids, so comparing ids compares trees.
class Expressions {
 public:
  using Id = std::uint32_t;
  static constexpr Id undefined = 0;  // never written
  static constexpr Id wrong = 1;      // combines contributions that must not be combined

  // A `Summary` has facts about a tree, so that callers need not walk over the tree.
  struct Summary {
    std::uint64_t element = 0;  // the index in the input that all contributions have in common
    std::uint64_t ranks = 0;    // sum of one random number for each contributing rank
    std::uint32_t leaves = 0;   // the number of contributions
    // The contributing ranks are [first, first + leaves), in this order; -1 means another order.
    std::int32_t first = -1;
    bool scaled = false;
    bool divided = false;
  };

  Expressions() : summaries_(2) {}

  Id leaf(int rank, std::uint64_t element);
  Id combine(Id left, Id right);
  Id scale(Id of);
  Id divide(Id of);
  const Summary& summary(Id id) const { return summaries_[id]; }
  // Returns the number that stands for a rank in Summary::ranks.
  static std::uint64_t mark(int rank);

 private:
  struct Key {
    std::uint64_t kind_and_left;
    std::uint64_t right;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  Id intern(const Key& key, const Summary& summary);

  std::vector<Summary> summaries_;
  std::unordered_map<Key, Id, Hash> ids_;
};

}  // namespace tutti::test
