#include "collectives/schedule/algorithms/circulant.h"

namespace tutti {
namespace {

// Calls `function` with each contiguous piece of the `count` blocks that begin with block `first`. There are
// two pieces if these blocks wrap around the end of the vector.
template <class Function>
void for_runs(const Blocks& blocks, int size, int first, int count, Function function) {
  first %= size;
  const int straight = std::min(count, size - first);
  function(sub_slice({}, blocks.offset(first), blocks.offset(first + straight) - blocks.offset(first)));
  if (straight < count) function(sub_slice({}, 0, blocks.offset(count - straight)));
}

}  // namespace

void circulant_reduce_scatter(ScheduleBuilder& builder, const Problem& problem, const Blocks& blocks,
                              const Slice& work, const Slice& result) {
  const int p = problem.size;
  const int r = problem.rank;
  if (p == 1) builder.copy(blocks.in_input(0), result);
  const Slice all = input(0, blocks.total());
  for (int span = p; span > 1; span = (span + 1) / 2) {
    const Slice& source = span == p ? all : work;
    const int skip = (span + 1) / 2;
    const int to = shifted(r, skip, p);
    const int from = shifted(r, -skip, p);
    for_runs(blocks, p, r + skip, span - skip,
             [&](const Slice& run) { builder.send(to, sub_slice(source, run.offset, run.count)); });
    for_runs(blocks, p, r, span - skip, [&](const Slice& run) {
      const Slice target = span == 2 ? result : sub_slice(work, run.offset, run.count);
      builder.recv_reduce(from, sub_slice(source, run.offset, run.count), target, MessageSide::left);
    });
    // If the number of blocks is odd, the first round leaves out one of them. Later rounds expect
    // this block in `work`, so it is copied there.
    if (span == p && span % 2 == 1) {
      const int middle = shifted(r, skip - 1, p);
      builder.copy(blocks.of(all, middle), blocks.of(work, middle));
    }
  }
}

void circulant_all_gather(ScheduleBuilder& builder, const Problem& problem, const Blocks& blocks,
                          const Slice& whole) {
  const int p = problem.size;
  const int r = problem.rank;
  // Only one round's messages are sent at a time. Otherwise, pieces of later rounds that are ready early
  // would delay the pieces that others wait for. (In the simulator, the all-gather would take twice as long.)
  builder.limit_in_flight(2);
  for (int have = 1; have < p; have *= 2) {
    const int more = std::min(have, p - have);
    for_runs(blocks, p, r, more, [&](const Slice& run) {
      builder.send(shifted(r, -have, p), sub_slice(whole, run.offset, run.count));
    });
    for_runs(blocks, p, r + have, more, [&](const Slice& run) {
      builder.recv(shifted(r, have, p), sub_slice(whole, run.offset, run.count));
    });
  }
}

}  // namespace tutti
