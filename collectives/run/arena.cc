#include "collectives/run/arena.h"

#include <algorithm>
#include <iterator>

namespace tutti {

std::optional<std::uint64_t> Arena::take(std::uint64_t bytes) {
  const auto hole = std::ranges::find_if(holes_, [&](const auto& each) { return each.second >= bytes; });
  if (hole == holes_.end()) return std::nullopt;
  const auto [offset, size] = *hole;
  holes_.erase(hole);
  if (size > bytes) holes_.emplace(offset + bytes, size - bytes);
  return offset;
}

void Arena::give_back(std::uint64_t offset, std::uint64_t bytes) {
  const auto after = holes_.lower_bound(offset);
  if (after != holes_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      holes_.erase(before);
    }
  }
  if (after != holes_.end() && after->first == offset + bytes) {
    bytes += after->second;
    holes_.erase(after);
  }
  holes_.emplace(offset, bytes);
}

std::uint64_t Arena::largest() const {
  std::uint64_t most = 0;
  for (const auto& [offset, bytes] : holes_) most = std::max(most, bytes);
  return most;
}

}  // namespace tutti
