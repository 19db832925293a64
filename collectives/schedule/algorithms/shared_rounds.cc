#include "collectives/schedule/algorithms/shared_rounds.h"

namespace tutti {

Ranks everybody(const Problem& problem) {
  Ranks ranks;
  for (int i = 1; i < problem.size; ++i) ranks.push_back((problem.rank + i) % problem.size);
  return ranks;
}

Ranks below(const Problem& problem) {
  Ranks ranks;
  for (int i = 0; i < problem.rank; ++i) ranks.push_back(i);
  return ranks;
}

Ranks above(const Problem& problem) {
  Ranks ranks;
  for (int i = problem.rank + 1; i < problem.size; ++i) ranks.push_back(i);
  return ranks;
}

std::uint64_t Rounds::aligned(const Problem& problem, std::uint64_t count) {
  const std::uint64_t line = std::max<std::uint64_t>(64 / problem.element_size, 1);
  return (count + line - 1) / line * line;
}

Rounds::Rounds(ScheduleBuilder& builder, const Problem& problem, const RoundsOptions& options)
    : builder_(builder), options_(options) {
  const std::uint64_t line = aligned(problem, 1);
  const std::uint64_t room =
      problem.window_bytes / problem.element_size / (options.lanes * options.depth) / line * line;
  const std::uint64_t wanted =
      aligned(problem, (options.count + options.lane_share - 1) / options.lane_share);
  unit_ = std::max(std::min(room, wanted), line);
  round_ = unit_ * options.lane_share;
  rounds_ = (options.count + round_ - 1) / round_;
  const std::uint64_t whole = options.count / round_ / rounds_per_repeat;
  if (options.repeatable && whole > 1) repeats_ = whole;
  // All ranks request a slice of the same size, even those that use only a part of it. The size decides
  // whether data moves through slots, pages or windows, so it must be equal on all ranks.
  builder_.window(problem.rank, 0, std::min(rounds_, options.depth) * options.lanes * unit_);
}

Part Rounds::part(std::uint64_t t) const {
  if (t < first_ || t >= last_) return {};  // a round before round 0 has wrapped around to a huge `t`
  return {t * round_, std::min(round_, options_.count - t * round_)};
}

Slice Rounds::lane(int owner, std::uint64_t t, std::uint64_t lane, std::uint64_t count) const {
  if (count == 0) return {BufferId::window, 0, 0, owner};
  return builder_.window(owner, (t % options_.depth * options_.lanes + lane) * unit_, count);
}

// Before iteration t, the sources must have finished iteration t - 1. This rank is about to
// overwrite the area that the readers read in iteration t - (depth - 1). So the readers must have
// finished that iteration. `before` is the number of signals that each rank gave before iteration
// 0.
void Rounds::await(std::uint64_t t, std::uint64_t rounds, std::uint32_t before, bool repeated,
                   const Ranks& sources, const Ranks& readers) const {
  const auto iteration = static_cast<std::uint32_t>(t);
  const auto depth = static_cast<std::uint32_t>(options_.depth);
  const bool writes = t < rounds;
  const std::uint32_t read = before + (iteration + 2 > depth ? iteration + 2 - depth : 0);
  const bool late = repeated || before != 0 || iteration >= depth;
  if (t != 0) {
    for (const int peer : sources) builder_.await(peer, before + iteration);
  }
  if (!writes || !late) return;
  for (const int peer : readers) {
    const bool awaited = t != 0 && std::find(sources.begin(), sources.end(), peer) != sources.end();
    if (!awaited) builder_.await(peer, read);
  }
}

}  // namespace tutti
