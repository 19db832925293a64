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

// `DeadPaths` remembers between which addresses (GIDs) packets do not pass. The first attempt to connect
// takes seconds to find that out. Later attempts between the same addresses then fail at once.
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
