#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "collectives/run/flat_schedule.h"
#include "collectives/run/run.h"
#include "collectives/schedule/problem.h"
#include "collectives/schedule/schedule.h"
#include "collectives/schedule/selector.h"

namespace tutti {

// A `CachedSchedule` is a schedule with the idle runs that belong to it.
class CachedSchedule : public std::enable_shared_from_this<CachedSchedule> {
 public:
  // `algorithm` is the id of the algorithm that made the schedule.
  CachedSchedule(Schedule schedule, std::uint8_t algorithm, std::size_t element_size)
      : schedule_(std::move(schedule)), flat_(schedule_, element_size), algorithm_(algorithm) {}
  ~CachedSchedule() { delete spare_.load(); }

  // A `Lease` holds a run of the schedule, and gives it back when it is destroyed.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease() { reset(); }
    void reset();
    Run* get() const { return run_.get(); }

   private:
    friend class CachedSchedule;
    std::shared_ptr<CachedSchedule> schedule_;
    std::unique_ptr<Run> run_;
  };

  // Returns an idle run of the schedule, or makes one. The schedule must consist of messages.
  Lease lease();
  const Schedule& schedule() const { return schedule_; }
  // Returns the flat form of the schedule; null if it has none.
  const FlatSchedule* flat() const { return flat_.usable() ? &flat_ : nullptr; }
  std::uint8_t algorithm() const { return algorithm_; }
  std::size_t step_count() const { return schedule_.steps.size(); }

 private:
  void give_back(std::unique_ptr<Run>& run);

  const Schedule schedule_;
  const FlatSchedule flat_;
  const std::uint8_t algorithm_;
  std::atomic<Run*> spare_{nullptr};  // an idle run that can be taken without locking
  std::mutex mutex_;
  std::vector<std::unique_ptr<Run>> idle_;
};

// `ScheduleCache` keeps the schedules that were used most recently, up to a total number of steps. It is
// thread-safe.
class ScheduleCache {
 public:
  explicit ScheduleCache(const Selector& selector) : selector_(selector) {}

  // Returns the schedule for a problem, and builds it if necessary. `algorithm` is an algorithm's id; if it
  // is 0, the selector chooses the algorithm.
  Result<std::shared_ptr<CachedSchedule>> get(const Problem& problem, std::uint8_t algorithm);

 private:
  struct Key {
    Problem problem;  // its spans point into `counts`
    std::uint8_t algorithm = 0;
    std::vector<std::uint64_t> counts;
  };
  struct Entry {
    Key key;
    std::uint64_t hash = 0;
    std::size_t steps = 0;
    std::shared_ptr<CachedSchedule> schedule;
  };

  static std::uint64_t hash(const Problem& problem, std::uint8_t algorithm);
  static bool matches(const Key& key, const Problem& problem, std::uint8_t algorithm);
  std::shared_ptr<CachedSchedule> find(const Problem& problem, std::uint8_t algorithm,
                                       std::uint64_t hash_value);
  void evict();

  const Selector& selector_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_multimap<std::uint64_t, std::list<Entry>::iterator> index_;
  std::size_t steps_ = 0;
};

}  // namespace tutti
