#include "tools/collective_size.h"

#include <algorithm>

namespace tutti::tools {

bool has_blocks(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return true;
    default:
      return false;
  }
}

std::uint64_t count_for(CollectiveKind kind, std::uint64_t bytes, int ranks, DataType type) {
  if (kind == CollectiveKind::barrier || bytes == 0) return 0;
  const std::uint64_t total = bytes / size_of(type);
  return std::max<std::uint64_t>(1, has_blocks(kind) ? total / static_cast<std::uint64_t>(ranks) : total);
}

}  // namespace tutti::tools
