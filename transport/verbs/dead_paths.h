#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "transport/verbs/gid.h"
#include "transport/verbs/note.h"

namespace tutti::verbs {

// `DeadPaths` remembers between which addresses (GIDs) packets do not pass. So it takes time to find that out
// for the first peer only, and not for each rank of the peer's host.
class DeadPaths {
 public:
  void add(const Gid& ours, const End& theirs) { paths_.emplace(bytes_of(ours), theirs.gid); }
  bool contains(const Gid& ours, const End& theirs) const {
    return paths_.contains({bytes_of(ours), theirs.gid});
  }

 private:
  using Bytes = std::array<std::uint8_t, 16>;

  static Bytes bytes_of(const Gid& gid) {
    Bytes bytes;
    std::copy(std::begin(gid.value.raw), std::end(gid.value.raw), bytes.begin());
    return bytes;
  }

  std::set<std::pair<Bytes, Bytes>> paths_;
};

}  // namespace tutti::verbs
