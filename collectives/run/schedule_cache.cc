#include "collectives/run/schedule_cache.h"

#include <algorithm>
#include <utility>

#include "collectives/schedule/algorithm.h"

namespace tutti {

namespace {

constexpr std::size_t max_cached_steps = 200'000;
constexpr std::size_t max_idle_runs = 4;
constexpr std::size_t max_idle_scratch = std::size_t{64} << 20;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdull;
}

}  // namespace

CachedSchedule::Lease& CachedSchedule::Lease::operator=(Lease&& other) noexcept {
  reset();
  schedule_ = std::move(other.schedule_);
  run_ = std::move(other.run_);
  return *this;
}

void CachedSchedule::Lease::reset() {
  if (run_ != nullptr && run_->scratch_bytes() <= max_idle_scratch) schedule_->give_back(run_);
  run_.reset();
  schedule_.reset();
}

// Keeps `run` as an idle run. If there are enough idle runs, `run` stays with the caller.
void CachedSchedule::give_back(std::unique_ptr<Run>& run) {
  Run* none = nullptr;
  if (spare_.compare_exchange_strong(none, run.get(), std::memory_order_release)) {
    static_cast<void>(run.release());
    return;
  }
  const std::lock_guard lock(mutex_);
  if (idle_.size() < max_idle_runs) idle_.push_back(std::move(run));
}

CachedSchedule::Lease CachedSchedule::lease() {
  Lease lease;
  lease.schedule_ = shared_from_this();
  lease.run_.reset(spare_.exchange(nullptr, std::memory_order_acquire));
  if (lease.run_ == nullptr) {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      lease.run_ = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (lease.run_ == nullptr) lease.run_ = std::make_unique<Run>(schedule_);
  return lease;
}

std::uint64_t ScheduleCache::hash(const Problem& problem, std::uint8_t algorithm) {
  std::uint64_t h = mix(static_cast<std::uint64_t>(problem.kind), algorithm);
  h = mix(h, problem.count);
  h = mix(h, static_cast<std::uint64_t>(problem.root) << 32 | problem.element_size);
  h = mix(h, (problem.commutative ? 1u : 0u) | (problem.average ? 2u : 0u) |
                 (problem.premultiplied ? 4u : 0u) | (problem.in_place ? 8u : 0u) |
                 (problem.registered ? 16u : 0u));
  for (const std::uint64_t count : problem.input_counts) h = mix(h, count);
  for (const std::uint64_t count : problem.output_counts) h = mix(h, ~count);
  return h;
}

bool ScheduleCache::matches(const Key& key, const Problem& problem, std::uint8_t algorithm) {
  return key.algorithm == algorithm && same_schedule(key.problem, problem);
}

std::shared_ptr<CachedSchedule> ScheduleCache::find(const Problem& problem, std::uint8_t algorithm,
                                                    std::uint64_t hash_value) {
  const auto [begin, end] = index_.equal_range(hash_value);
  for (auto it = begin; it != end; ++it) {
    if (!matches(it->second->key, problem, algorithm)) continue;
    entries_.splice(entries_.begin(), entries_, it->second);
    return it->second->schedule;
  }
  return nullptr;
}

Result<std::shared_ptr<CachedSchedule>> ScheduleCache::get(const Problem& problem, std::uint8_t algorithm) {
  {  // nearly always, the problem equals the last one
    const std::lock_guard lock(mutex_);
    if (!entries_.empty() && matches(entries_.front().key, problem, algorithm)) {
      return entries_.front().schedule;
    }
  }
  const std::uint64_t hash_value = hash(problem, algorithm);
  {
    const std::lock_guard lock(mutex_);
    if (auto found = find(problem, algorithm, hash_value)) return found;
  }
  const Result<Choice> choice = selector_.choose(problem, algorithm);
  if (!choice.ok()) return choice.status();
  auto built = std::make_shared<CachedSchedule>(build_schedule(*choice->algorithm, problem, choice->tuning),
                                                choice->algorithm->id, problem.element_size);
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.emplace_front();
  entry.key = {problem, algorithm, {}};
  entry.key.counts.assign(problem.input_counts.begin(), problem.input_counts.end());
  entry.key.counts.insert(entry.key.counts.end(), problem.output_counts.begin(), problem.output_counts.end());
  const std::span<const std::uint64_t> counts(entry.key.counts);
  entry.key.problem.input_counts = counts.first(problem.input_counts.size());
  entry.key.problem.output_counts = counts.subspan(problem.input_counts.size());
  entry.hash = hash_value;
  entry.schedule = built;
  entry.steps = built->step_count() + 16;
  steps_ += entry.steps;
  index_.emplace(hash_value, entries_.begin());
  evict();
  return built;
}

// The newest entry stays, even if it is too large, since it is about to run.
void ScheduleCache::evict() {
  while (steps_ > max_cached_steps && entries_.size() > 1) {
    const auto last = std::prev(entries_.end());
    const auto [begin, end] = index_.equal_range(last->hash);
    index_.erase(std::find_if(begin, end, [&](const auto& item) { return item.second == last; }));
    steps_ -= last->steps;
    entries_.erase(last);
  }
}

}  // namespace tutti
