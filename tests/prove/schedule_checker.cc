#include "tests/prove/schedule_checker.h"

#include <algorithm>
#include <optional>
#include <random>
#include <tuple>
#include <unordered_map>

#include "tests/prove/schedule_memory.h"
#include "tests/prove/schedule_results.h"
#include "tests/prove/shared_checker.h"

namespace tutti::test {
namespace {

using Id = Expressions::Id;

// An `Execution` runs all ranks together, and sends are synchronous. So a message moves only when
// both its sender and its receiver have reached it.
class Execution {
 public:
  Execution(const std::vector<Schedule>& schedules, const ScheduleCase& test, std::uint32_t seed)
      : schedules_(schedules), test_(test), random_(seed) {
    const auto p = schedules.size();
    for (std::size_t rank = 0; rank < p; ++rank) {
      memories_.emplace_back(test, schedules[rank], static_cast<int>(rank), expressions_);
      missing_.emplace_back();
      for (const Step& step : schedules[rank].steps) missing_.back().push_back(step.dependencies);
      for (const std::uint32_t step : schedules[rank].ready) eligible_.push_back({rank, step});
      total_ += schedules[rank].steps.size();
      if (test.base.kind == CollectiveKind::barrier) {
        heard_.emplace_back(schedules[rank].steps.size(), std::vector<bool>(p));
        for (auto& step : heard_.back()) step[rank] = true;
      }
    }
  }

  std::string structure() const {
    for (std::size_t rank = 0; rank < schedules_.size(); ++rank) {
      std::string error = check_structure(schedules_[rank], memories_[rank], static_cast<int>(rank));
      if (!error.empty()) return error;
    }
    return {};
  }

  std::string run() {
    while (!eligible_.empty()) {
      const std::size_t pick = random_() % eligible_.size();
      const Ref ref = eligible_[pick];
      eligible_[pick] = eligible_.back();
      eligible_.pop_back();
      std::string error = start(ref);
      if (!error.empty()) return error;
    }
    if (done_ == total_) return {};
    std::string stuck = std::to_string(total_ - done_) + " steps cannot be carried out";
    if (!posted_.empty()) {
      const Ref ref = posted_.begin()->second;
      stuck += ", such as " + at(static_cast<int>(ref.rank), ref.step, "waits for its peer");
    }
    return stuck;
  }

  std::string check_results(bool rank_order);

 private:
  struct Ref {
    std::size_t rank;
    std::size_t step;
  };
  const Step& step(Ref ref) const { return schedules_[ref.rank].steps[ref.step]; }

  std::string start(Ref ref) {
    const Step& s = step(ref);
    if (s.peer < 0) {
      std::string error = carry_out(ref, {});
      complete(ref);
      return error;
    }
    const auto peer = static_cast<std::size_t>(s.peer);
    if (peer >= schedules_.size() || peer == ref.rank)
      return at(static_cast<int>(ref.rank), ref.step, "has no peer");
    const bool sending = s.kind == StepKind::send;
    const std::uint64_t pair =
        sending ? ref.rank * schedules_.size() + peer : peer * schedules_.size() + ref.rank;
    const auto [other, first] = posted_.try_emplace(pair << 32 | s.index, ref);
    if (first) return {};
    const Ref partner = other->second;
    posted_.erase(other);
    if ((step(partner).kind == StepKind::send) == sending) {
      return at(static_cast<int>(ref.rank), ref.step, "uses the number of another message");
    }
    return sending ? transfer(ref, partner) : transfer(partner, ref);
  }

  std::string transfer(Ref sender, Ref receiver) {
    if (step(sender).left.count != step(receiver).out.count) {
      return at(static_cast<int>(receiver.rank), receiver.step,
                "expects another length than rank " + std::to_string(sender.rank) + " step " +
                    std::to_string(sender.step) + " sends");
    }
    std::string error = carry_out(receiver, sender);
    if (!heard_.empty()) hear(receiver, heard_[sender.rank][sender.step]);
    complete(sender);
    complete(receiver);
    return error;
  }

  // Carries out a step. If the step receives a message, `from` is the step that sends it.
  std::string carry_out(Ref ref, std::optional<Ref> from) {
    const Step& s = step(ref);
    Memory& memory = memories_[ref.rank];
    const Range left = *memory.range(s.left);
    const Range right = *memory.range(s.right);
    const Range out = *memory.range(s.out);
    for (std::size_t i = 0; i < s.out.count; ++i) {
      Id message = Expressions::undefined;
      if (from) {
        Memory& remote = memories_[from->rank];
        message = remote[remote.range(step(*from).left)->begin + i];
      }
      const Id a = s.left.count != 0 ? memory[left.begin + i] : message;
      const Id b = s.right.count != 0 ? memory[right.begin + i] : message;
      const Id value = value_of(s, a, b, message, expressions_);
      if (value <= Expressions::wrong) return at(static_cast<int>(ref.rank), ref.step, fault(value, i));
      memory[out.begin + i] = value;
    }
    return {};
  }

  void complete(Ref ref) {
    ++done_;
    for (const std::uint32_t successor : schedules_[ref.rank].successors_of(step(ref))) {
      const Ref next{ref.rank, successor};
      if (!heard_.empty()) hear(next, heard_[ref.rank][ref.step]);
      if (--missing_[ref.rank][next.step] == 0) eligible_.push_back(next);
    }
  }

  void hear(Ref ref, const std::vector<bool>& news) {
    std::vector<bool>& known = heard_[ref.rank][ref.step];
    for (std::size_t i = 0; i < news.size(); ++i) known[i] = known[i] || news[i];
  }

  std::string check_barrier() const;

  const std::vector<Schedule>& schedules_;
  const ScheduleCase& test_;
  std::mt19937 random_;
  Expressions expressions_;
  std::vector<Memory> memories_;
  std::vector<std::vector<std::uint32_t>> missing_;
  std::vector<Ref> eligible_;
  std::unordered_map<std::uint64_t, Ref> posted_;  // sends and receives that wait for the other side
  std::size_t total_ = 0;
  std::size_t done_ = 0;
  std::vector<std::vector<std::vector<bool>>> heard_;  // barrier: [rank][step][rank known to have come]
};

std::string Execution::check_barrier() const {
  for (std::size_t rank = 0; rank < heard_.size(); ++rank) {
    std::vector<bool> known(heard_.size());
    known[rank] = true;
    for (const auto& step : heard_[rank]) {
      for (std::size_t i = 0; i < step.size(); ++i) known[i] = known[i] || step[i];
    }
    if (std::find(known.begin(), known.end(), false) != known.end()) {
      return "rank " + std::to_string(rank) + ": leaves the barrier without having heard of every rank";
    }
  }
  return {};
}

std::string Execution::check_results(bool rank_order) {
  if (test_.base.kind == CollectiveKind::barrier) return check_barrier();
  return test::check_results(test_, memories_, expressions_, rank_order);
}

std::vector<Schedule> build_all(const Algorithm& algorithm, const ScheduleCase& test, const Tuning& tuning) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < test.base.size; ++rank) {
    schedules.push_back(build_schedule(algorithm, test.at(rank), tuning));
  }
  return schedules;
}

}  // namespace

std::string check_schedules(const std::vector<Schedule>& schedules, const ScheduleCase& test, bool rank_order,
                            std::uint32_t seed) {
  if (schedules.front().shared) return check_shared_schedules(schedules, test, rank_order, seed);
  Execution execution(schedules, test, seed);
  std::string error = execution.structure();
  if (error.empty()) error = execution.run();
  if (error.empty()) error = execution.check_results(rank_order);
  return error;
}

std::string check_algorithm(const Algorithm& algorithm, const ScheduleCase& test, const Tuning& tuning,
                            std::uint32_t seed) {
  const std::vector<Schedule> schedules = build_all(algorithm, test, tuning);
  std::string error = check_schedules(schedules, test, !test.base.commutative, seed);
  if (error.empty() && test.base.in_place) {
    ScheduleCase apart = test;
    apart.base.in_place = false;
    for (int rank = 0; rank < test.base.size && error.empty(); ++rank) {
      const Schedule other = build_schedule(algorithm, apart.at(rank), tuning);
      if (!same_messages(schedules[static_cast<std::size_t>(rank)], other)) {
        error = "rank " + std::to_string(rank) + ": messages differ in and out of place";
      }
    }
  }
  if (error.empty()) return {};
  return std::string(algorithm.name) + ", " + test.describe() + ", radix " + std::to_string(tuning.radix) +
         ", segments of " + std::to_string(tuning.segment_bytes) + " B, window " +
         std::to_string(tuning.window) + ", seed " + std::to_string(seed) + ": " + error;
}

bool same_messages(const Schedule& a, const Schedule& b) {
  if (a.shared || b.shared) return same_signals(a, b);
  using Message = std::tuple<bool, int, std::uint32_t, std::uint64_t>;
  const auto messages = [](const Schedule& schedule) {
    std::vector<Message> all;
    for (const Step& step : schedule.steps) {
      const bool sending = step.kind == StepKind::send;
      if (step.peer >= 0)
        all.emplace_back(sending, step.peer, step.index, sending ? step.left.count : step.out.count);
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  return messages(a) == messages(b);
}

}  // namespace tutti::test
