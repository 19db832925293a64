#include "collectives/schedule/registered.h"

namespace tutti {

namespace {

// Below this size a vote costs more than the copies that it may save.
constexpr std::uint64_t least_bytes = 128 * 1024;

}  // namespace

Reach reach(CollectiveKind kind, int root, int rank) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return {true, true};
    case CollectiveKind::reduce:
      return {true, rank == root};
    case CollectiveKind::broadcast:
    case CollectiveKind::scatter:
      return {rank == root, false};
    default:
      return {true, false};
  }
}

bool has_registered_form(const Problem& problem) {
  switch (problem.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
      // Scaled inputs and averages need memory in addition to the buffers.
      if (problem.premultiplied || problem.average) return false;
      break;
    case CollectiveKind::reduce_scatter:
      if (problem.premultiplied) return false;
      break;
    case CollectiveKind::broadcast:
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      break;
    default:
      return false;
  }
  return problem.window_bytes != 0 && problem.size > 1 && problem.count * problem.element_size >= least_bytes;
}

}  // namespace tutti
