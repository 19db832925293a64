#include "collectives/schedule/hazards.h"

namespace tutti {

void AccessHistory::split(std::uint64_t at) {
  auto next = intervals_.upper_bound(at);
  if (next == intervals_.begin()) return;
  auto& [begin, interval] = *std::prev(next);
  if (begin == at || interval.end <= at) return;
  intervals_.emplace_hint(next, at, interval);
  interval.end = at;
}

void AccessHistory::read(std::uint64_t begin, std::uint64_t end, std::uint32_t step,
                         std::vector<std::uint32_t>& after) {
  split(begin);
  split(end);
  auto it = intervals_.lower_bound(begin);
  while (begin < end) {
    if (it == intervals_.end() || it->first > begin) {  // a gap that no step has touched so far
      const std::uint64_t until = it == intervals_.end() ? end : std::min(end, it->first);
      it = intervals_.emplace_hint(it, begin, Interval{until, nobody, {}});
    }
    Interval& interval = it->second;
    if (interval.writer != nobody && interval.writer != step) after.push_back(interval.writer);
    if (interval.readers.empty() || interval.readers.back() != step) interval.readers.push_back(step);
    begin = interval.end;
    ++it;
  }
}

void AccessHistory::write(std::uint64_t begin, std::uint64_t end, std::uint32_t step,
                          std::vector<std::uint32_t>& after) {
  split(begin);
  split(end);
  const auto first = intervals_.lower_bound(begin);
  auto it = first;
  for (; it != intervals_.end() && it->first < end; ++it) {
    const Interval& interval = it->second;
    // The readers of the interval wait for its writer. So if `step` waits for a reader, it need not wait for
    // the writer too.
    bool read_by_others = false;
    for (const std::uint32_t reader : interval.readers) {
      if (reader == step) continue;
      after.push_back(reader);
      read_by_others = true;
    }
    if (!read_by_others && interval.writer != nobody && interval.writer != step)
      after.push_back(interval.writer);
  }
  intervals_.emplace_hint(intervals_.erase(first, it), begin, Interval{end, step, {}});
}

}  // namespace tutti
