#include "tests/prove/shared_checker.h"

#include <algorithm>
#include <deque>
#include <random>
#include <tuple>

#include "collectives/schedule/registered.h"
#include "tests/prove/access_clocks.h"
#include "tests/prove/schedule_memory.h"
#include "tests/prove/schedule_results.h"

namespace tutti::test {
namespace {

using Id = Expressions::Id;

// A `Walk` is one rank's position in its schedule, including the repetition that Schedule::Repeat describes.
class Walk {
 public:
  explicit Walk(const Schedule& schedule) : schedule_(schedule) {}

  bool over() const { return cursor_ == schedule_.steps.size(); }
  std::size_t number() const { return cursor_; }

  // Returns the current step, with the indices and offsets of the current repetition.
  Step step() const {
    Step step = schedule_.steps[cursor_];
    if (!repeated()) return step;
    step.index += static_cast<std::uint32_t>(repetition_) * schedule_.repeat.signals;
    for (Slice* slice : {&step.left, &step.right, &step.out}) {
      if (slice->buffer != BufferId::window) slice->offset += repetition_ * schedule_.repeat.stride;
    }
    return step;
  }

  void next() {
    const bool last = repeated() && cursor_ + 1 == schedule_.repeat.last;
    ++cursor_;
    if (last && ++repetition_ < schedule_.repeat.times) cursor_ = schedule_.repeat.first;
  }

 private:
  bool repeated() const {
    return schedule_.repeat.times != 0 && cursor_ >= schedule_.repeat.first &&
           cursor_ < schedule_.repeat.last;
  }

  const Schedule& schedule_;
  std::size_t cursor_ = 0;
  std::uint64_t repetition_ = 0;
};

class SharedExecution {
 public:
  SharedExecution(const std::vector<Schedule>& schedules, const ScheduleCase& test, std::uint32_t seed)
      : test_(test), random_(seed), clocks_(schedules.size()) {
    for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
      walks_.emplace_back(schedules[rank]);
      memories_.emplace_back(test, schedules[rank], static_cast<int>(rank), expressions_);
      logs_.emplace_back(clocks_, memories_.back().size());
      running_.push_back(rank);
    }
  }

  std::string run() {
    while (!running_.empty()) {
      const std::size_t pick = random_() % running_.size();
      const std::size_t rank = running_[pick];
      // The picked rank runs a random number of steps.
      const std::uint32_t steps = 1 + random_() % (1u << random_() % 12);
      for (std::uint32_t i = 0; i < steps; ++i) {
        if (!walks_[rank].over() && !blocked(rank)) {
          std::string error = carry_out(rank);
          if (!error.empty()) return at(static_cast<int>(rank), walks_[rank].number(), error);
          walks_[rank].next();
          continue;
        }
        if (!walks_[rank].over()) waiting_.push_back(rank);
        running_[pick] = running_.back();
        running_.pop_back();
        break;
      }
    }
    if (!fault_.empty() || waiting_.empty()) return fault_;
    const std::size_t rank = waiting_.front();
    const Step step = walks_[rank].step();
    return at(static_cast<int>(rank), walks_[rank].number(),
              "awaits signal #" + std::to_string(step.index) + " of rank " + std::to_string(step.peer) +
                  ", which has given " +
                  std::to_string(clocks_.signals(static_cast<std::size_t>(step.peer))) +
                  " and will give no more");
  }

  std::string check(bool rank_order) {
    std::string error = test_.base.kind == CollectiveKind::barrier
                            ? check_barrier()
                            : check_results(test_, memories_, expressions_, rank_order);
    return error.empty() && test_.base.registered ? check_leaving() : error;
  }

 private:
  bool blocked(std::size_t rank) const {
    const Step step = walks_[rank].step();
    if (step.kind != StepKind::await) return false;
    const auto peer = static_cast<std::size_t>(step.peer);
    return peer < walks_.size() && clocks_.signals(peer) < step.index;
  }

  // Carries out the rank's next step. Returns an error text, or an empty text.
  std::string carry_out(std::size_t rank) {
    const Step step = walks_[rank].step();
    switch (step.kind) {
      case StepKind::signal:
        if (step.index != clocks_.signals(rank) + 1) return "is not the next signal";
        clocks_.signal(rank);
        wake();
        return {};
      case StepKind::await: {
        const auto peer = static_cast<std::size_t>(step.peer);
        if (peer >= walks_.size() || peer == rank) return "has no peer";
        clocks_.await(rank, peer, step.index);
        return {};
      }
      case StepKind::send:
      case StepKind::recv:
      case StepKind::recv_reduce:
        return "is a message";
      default:
        return compute(rank, step);
    }
  }

  void wake() {
    const auto awake =
        std::partition(waiting_.begin(), waiting_.end(), [this](std::size_t rank) { return blocked(rank); });
    running_.insert(running_.end(), awake, waiting_.end());
    waiting_.erase(awake, waiting_.end());
  }

  std::size_t owner(std::size_t rank, const Slice& slice) const {
    return slice.owner == own ? rank : static_cast<std::size_t>(slice.owner);
  }

  // Returns whether a step may access the slice.
  bool within_reach(const Slice& slice) const {
    const int p = test_.base.size;
    if (slice.buffer == BufferId::window) return slice.owner >= 0 && slice.owner < p;
    if (slice.owner == own) return true;
    if (!test_.base.registered || slice.owner < 0 || slice.owner >= p) return false;
    const Reach shown = reach(test_.base.kind, test_.base.root, slice.owner);
    return slice.buffer == BufferId::input ? shown.input : slice.buffer == BufferId::output && shown.output;
  }

  // Returns the slices that a step writes, one for each rank whose memory it writes to.
  std::vector<Slice> targets(const Step& step) const {
    if (step.kind != StepKind::reduce || step.out.owner != everyone) return {step.out};
    std::vector<Slice> slices(walks_.size(), step.out);
    for (std::size_t i = 0; i < slices.size(); ++i) slices[i].owner = static_cast<std::int32_t>(i);
    return slices;
  }

  std::string check_slices(std::size_t rank, const Step& step) const {
    const bool two = step.kind == StepKind::reduce;
    if (step.left.count != step.out.count ||
        (two ? step.right.count != step.out.count : step.right.count != 0))
      return "sizes differ";
    const auto out = memories_[owner(rank, step.out)].range(step.out);
    for (const Slice& slice : {step.left, step.right, step.out}) {
      if (slice.count == 0) continue;
      if (!within_reach(slice)) return "accesses memory that its owner has not shared";
      const auto range = memories_[owner(rank, slice)].range(slice);
      if (!range || !out) return "outside its buffer";
      if (owner(rank, slice) == owner(rank, step.out) && overlap_badly(*range, *out))
        return "overlaps partly";
    }
    return {};
  }

  std::string compute(std::size_t rank, const Step& step) {
    const std::vector<Slice> outs = targets(step);
    for (const Slice& out : outs) {
      Step single = step;
      single.out = out;
      if (std::string error = check_slices(rank, single); !error.empty()) return error;
    }
    const Access access{rank, clocks_.now(rank), static_cast<std::uint32_t>(walks_[rank].number())};
    for (std::uint64_t i = 0; i < step.out.count; ++i) {
      const Access* race = nullptr;
      const Id left = read(step.left, i, access, race);
      const Id right = step.right.count == 0 ? Expressions::undefined : read(step.right, i, access, race);
      const Id value = value_of(step, left, right, Expressions::undefined, expressions_);
      // A wrong value often results from a race that is found only later. So the value is only
      // noted here, and a later race is reported instead.
      if (value <= Expressions::wrong && fault_.empty()) {
        fault_ = at(static_cast<int>(rank), walks_[rank].number(), fault(value, i));
      }
      for (const Slice& out : outs) write(out, i, access, value, race);
      if (race != nullptr) {
        return "races with step " + std::to_string(race->step) + " of rank " + std::to_string(race->rank) +
               " for element " + std::to_string(i);
      }
    }
    return {};
  }

  Id read(const Slice& slice, std::uint64_t i, const Access& access, const Access*& race) {
    const std::size_t whose = owner(access.rank, slice);
    const std::size_t cell = memories_[whose].range(slice)->begin + i;
    if (race == nullptr && is_shared(slice)) race = logs_[whose].read(cell, access);
    return memories_[whose][cell];
  }

  void write(const Slice& slice, std::uint64_t i, const Access& access, Id value, const Access*& race) {
    const std::size_t whose = owner(access.rank, slice);
    const std::size_t cell = memories_[whose].range(slice)->begin + i;
    if (race == nullptr && is_shared(slice)) race = logs_[whose].write(cell, access);
    memories_[whose][cell] = value;
  }

  bool is_shared(const Slice& slice) const {
    return slice.buffer == BufferId::window || (test_.base.registered && slice.buffer != BufferId::scratch);
  }

  std::string check_barrier() const {
    for (std::size_t rank = 0; rank < walks_.size(); ++rank) {
      for (std::size_t peer = 0; peer < walks_.size(); ++peer) {
        if (clocks_.has_heard_of(rank, peer)) continue;
        return "rank " + std::to_string(rank) + ": leaves the barrier without having heard of every rank";
      }
    }
    return {};
  }

  std::string check_leaving() const {
    for (std::size_t rank = 0; rank < walks_.size(); ++rank) {
      for (const Range& range : {memories_[rank].input(), memories_[rank].output()}) {
        for (std::size_t cell = range.begin; cell < range.end; ++cell) {
          const Access* late = logs_[rank].after(cell, rank);
          if (late == nullptr) continue;
          return at(static_cast<int>(late->rank), late->step,
                    "may touch memory of rank " + std::to_string(rank) + " after that rank has left");
        }
      }
    }
    return {};
  }

  const ScheduleCase& test_;
  std::mt19937 random_;
  Expressions expressions_;
  Clocks clocks_;
  std::deque<Walk> walks_;
  std::vector<Memory> memories_;
  std::vector<AccessLog> logs_;
  std::vector<std::size_t> running_;  // ranks that may continue
  std::vector<std::size_t> waiting_;  // ranks that await a signal that has not been given yet
  std::string fault_;                 // the first wrong value
};

std::string check_windows(const std::vector<Schedule>& schedules, const ScheduleCase& test) {
  const std::uint64_t used = schedules.front().window_count;
  if (used * test.base.element_size > test.base.window_bytes)
    return "the schedule uses more than the windows hold";
  for (const Schedule& schedule : schedules) {
    if (!schedule.shared) return "some ranks exchange messages";
    // `window_count` must be equal on all ranks. It decides whether an operation uses the windows
    // or fits into the slots of the board.
    if (schedule.window_count != used) return "ranks do not agree on how much of the windows they use";
  }
  return {};
}

}  // namespace

std::string check_shared_schedules(const std::vector<Schedule>& schedules, const ScheduleCase& test,
                                   bool rank_order, std::uint32_t seed) {
  std::string error = check_windows(schedules, test);
  if (!error.empty()) return error;
  SharedExecution execution(schedules, test, seed);
  error = execution.run();
  return error.empty() ? execution.check(rank_order) : error;
}

bool same_signals(const Schedule& a, const Schedule& b) {
  using Mark = std::tuple<StepKind, int, std::uint32_t>;
  const auto marks = [](const Schedule& schedule) {
    std::vector<Mark> all;
    for (Walk walk(schedule); !walk.over(); walk.next()) {
      const Step step = walk.step();
      if (step.kind == StepKind::signal || step.kind == StepKind::await)
        all.emplace_back(step.kind, step.peer, step.index);
    }
    return all;
  };
  return a.shared == b.shared && a.window_count == b.window_count && marks(a) == marks(b);
}

}  // namespace tutti::test
