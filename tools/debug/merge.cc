#include "tools/debug/merge.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tools/debug/groups.h"
#include "tools/debug/waits.h"

namespace tutti::tools {

namespace {

using Communicator = RankDump::Communicator;
using Operation = RankDump::Operation;

// A wait of fewer seconds than this proves nothing. The ranks are dumped one after the other, and
// their clocks differ a little.
constexpr double least_wait = 0.1;
// A dump waits this many seconds for the answer of the rank's driving thread. `RankDump::progress`
// is false if the thread did not answer. In that case the thread has been stuck for at least this
// long.
constexpr double unanswered = 1;

// Returns for how many seconds the rank of `waiting` has certainly waited in `operation` for another rank.
// `other` is the dump of that other rank, or null if there is none. The other rank had not called the
// operation when it was dumped, but may have called it afterwards. So if `other` is the earlier dump, only
// the wait until that dump counts. The clocks of different hosts cannot be compared, so dumps of different
// hosts count as made at the same time.
double known_wait(const RankDump& waiting, const Operation& operation, const RankDump* other) {
  const double age = operation.issued_us != 0 ? seconds_between(operation.issued_us, waiting.time_us)
                     : waiting.progress       ? 0
                                              : unanswered;
  const bool comparable = other != nullptr && other->host == waiting.host;
  return comparable ? age - seconds_between(other->time_us, waiting.time_us) : age;
}

class Merge {
 public:
  explicit Merge(const std::vector<RankDump>& dumps);
  std::string report();

 private:
  bool find_mismatch(const Group& group);
  void find_waits(const Group& group);
  void transfers_of(const Group& group);
  void add_wait(const RankDump& waiting, const Operation& operation, int other, const std::string& what);
  void name_the_late();
  void name_a_circle();
  void name_the_missing();
  double seconds_apart() const;
  std::string name(int rank) const;
  std::string state_of(int rank) const;

  const std::vector<RankDump>& dumps_;
  std::map<int, const RankDump*> by_rank_;
  std::map<int, std::string> names_;  // the names of the ranks that others wait for
  std::map<std::pair<std::uint64_t, std::vector<int>>, Group> groups_;
  std::vector<Wait> waits_;
  std::string text_;
  bool something_ = false;  // the report has found a problem
  // This is true if a rank waits for another rank, but has waited for less than `least_wait`.
  bool moments_ = false;
};

Merge::Merge(const std::vector<RankDump>& dumps) : dumps_(dumps) {
  for (const RankDump& dump : dumps_) {
    by_rank_[dump.rank] = &dump;
    for (const Communicator& communicator : dump.communicators) {
      Group& group = groups_[{communicator.context, communicator.ranks}];
      group.context = communicator.context;
      group.ranks = communicator.ranks;
      group.views[dump.rank] = {&dump, &communicator};
      names_.insert(communicator.names.begin(), communicator.names.end());
    }
  }
}

std::string Merge::name(int rank) const {
  const auto dumped = by_rank_.find(rank);
  if (dumped != by_rank_.end()) return dumped->second->name();
  const auto known = names_.find(rank);
  return known == names_.end() ? "rank " + std::to_string(rank) : known->second;
}

// Reports the first operation number at which ranks have made different calls. Returns whether
// there is such a number. If there is, the report need not say which rank is behind.
bool Merge::find_mismatch(const Group& group) {
  std::map<std::uint64_t, std::map<std::string, std::vector<int>>> calls;
  for (const auto& [rank, view] : group.views) {
    for (const Operation& operation : view.communicator->operations) {
      calls[operation.number][operation.call].push_back(rank);
    }
  }
  for (const auto& [number, variants] : calls) {
    if (variants.size() < 2) continue;
    text_ += "  MISMATCH in #" + std::to_string(number) + ":";
    for (const auto& [call, ranks] : variants) {
      text_ += (call == variants.begin()->first ? " " : "; ") + plural(ranks) + " called " + call;
    }
    text_ += "\n";
    something_ = true;
    return true;
  }
  return false;
}

void Merge::add_wait(const RankDump& waiting, const Operation& operation, int other,
                     const std::string& what) {
  const auto there = by_rank_.find(other);
  const RankDump* dump = there == by_rank_.end() ? nullptr : there->second;
  if (known_wait(waiting, operation, dump) >= least_wait) {
    waits_.push_back({waiting.rank, other, what});
  } else {
    moments_ = true;
  }
}

void Merge::find_waits(const Group& group) {
  for (const auto& [rank, view] : group.views) {
    const Operation* running = view.running();
    if (running == nullptr) continue;
    const std::string what = numbered(*running);
    for (const int other : group.ranks) {
      const auto there = group.views.find(other);
      const bool told = there != group.views.end();
      const bool missing = told ? there->second.communicator->issued <= running->number
                                : std::ranges::count(running->waiting_for, other) > 0;
      if (other != rank && missing) add_wait(*view.dump, *running, other, what);
    }
  }
}

void Merge::transfers_of(const Group& group) {
  for (const auto& [rank, view] : group.views) {
    for (const Operation& transfer : view.communicator->transfers) {
      if (!transfer.running) continue;
      text_ += "  rank " + std::to_string(rank) + ": in " + transfer.call;
      if (transfer.issued_us != 0) {
        text_ += ", for " + format_age(seconds_between(transfer.issued_us, view.dump->time_us));
      }
      if (!transfer.waiting_for.empty()) text_ += ", waits for " + plural(transfer.waiting_for);
      text_ += "\n";
      for (const int other : transfer.waiting_for) add_wait(*view.dump, transfer, other, transfer.call);
    }
  }
}

// Describes the state of a rank that waits for no rank, although others wait for it.
std::string Merge::state_of(int rank) const {
  const auto found = by_rank_.find(rank);
  if (found == by_rank_.end()) {
    return "there is no dump of it: it has ended, is stopped, or its dump was not given";
  }
  const RankDump& dump = *found->second;
  const std::string stays = dump.progress ? "" : "; one of its threads stays in a callback or in a reduction";
  const Operation* last = nullptr;
  std::int64_t latest = 0;
  for (const Communicator& communicator : dump.communicators) {
    // The end time of the last operation may be unknown. Operations end in order, so the latest
    // known end time of an earlier operation is a lower limit.
    std::int64_t known = 0;
    for (const Operation& operation : communicator.operations) {
      if (operation.running) return "it is itself in " + numbered(operation) + stays;
      known = std::max(known, operation.ended_us);
    }
    if (communicator.operations.empty() || (last != nullptr && known < latest)) continue;
    last = &communicator.operations.back();
    latest = known;
  }
  if (last == nullptr) return "it has called nothing yet" + stays;
  std::string text = "its last call was " + numbered(*last);
  if (last->ended_us != 0) {
    text += ", over " + format_age(seconds_between(last->ended_us, dump.time_us)) + " before its dump";
  }
  return text + stays;
}

void Merge::name_the_late() {
  for (const auto& [rank, reasons] : awaited_only(waits_)) {
    something_ = true;
    text_ += name(rank) + " is BEHIND:";
    for (const auto& [what, who] : reasons) {
      text_ += (what == reasons.begin()->first ? " " : "; ") + plural(who) +
               (who.size() == 1 ? " waits" : " wait") + " for it in " + what;
    }
    text_ += "; " + state_of(rank) + "\n";
  }
}

void Merge::name_a_circle() {
  const std::vector<Wait> circle = find_circle(waits_);
  if (circle.empty()) return;
  something_ = true;
  text_ += "CIRCLE:";
  for (const Wait& wait : circle) {
    text_ += (wait.from == circle.front().from ? " " : "; ") + name(wait.from) + " waits for rank " +
             std::to_string(wait.to) + " in " + wait.what;
  }
  text_ += "\n";
}

// Names the ranks that have no dump and for which no rank is known to wait. Other ranks may still
// wait for them, because the members of a failed communicator no longer know which ranks they
// waited for.
void Merge::name_the_missing() {
  std::set<int> named;
  for (const Wait& wait : waits_) named.insert(wait.to);
  std::map<int, Reasons> reasons;
  for (const auto& [key, group] : groups_) {
    for (const int rank : group.ranks) {
      if (by_rank_.contains(rank) || named.contains(rank)) continue;
      Reasons& others = reasons[rank];
      for (const auto& [other, view] : group.views) {
        if (const Operation* running = view.running()) others[numbered(*running)].insert(other);
        for (const Operation& transfer : view.communicator->transfers) {
          if (transfer.running) others[transfer.call].insert(other);
        }
      }
    }
  }
  std::map<Reasons, std::vector<int>> missing;
  for (const auto& [rank, others] : reasons) missing[others].push_back(rank);
  for (const auto& [others, ranks] : missing) {
    something_ = true;
    text_ += "there is no dump of " + (ranks.size() == 1 ? name(ranks.front()) : plural(ranks)) +
             (ranks.size() == 1 ? ": it has ended, is stopped, or its dump was not given"
                                : ": they have ended, are stopped, or their dumps were not given");
    for (const auto& [what, who] : others)
      text_ += "; " + plural(who) + (who.size() == 1 ? " is" : " are") + " in " + what;
    text_ += others.empty() ? "; no other is in an operation with " : ", and may wait for ";
    text_ += ranks.size() == 1 ? "it\n" : "them\n";
  }
}

double Merge::seconds_apart() const {
  const auto [first, last] = std::ranges::minmax_element(dumps_, {}, &RankDump::time_us);
  return seconds_between(first->time_us, last->time_us);
}

std::string Merge::report() {
  for (const auto& [key, group] : groups_) {
    if (group.is_quiet()) continue;
    text_ += group.describe(by_rank_);
    if (!find_mismatch(group)) find_waits(group);
    transfers_of(group);
  }
  const bool idle = text_.empty();
  name_the_late();
  name_a_circle();
  name_the_missing();
  if (idle) {
    text_ = std::string("nothing is in flight, and ") + (something_ ? "these" : "all") +
            " ranks have made equally many calls\n" + text_;
  } else if (something_) {
    return text_;
  } else if (moments_) {
    text_ += "no rank seems to be stuck: the ranks were asked at different moments, " +
             format_age(seconds_apart()) + " apart, and no rank had waited for another one for " +
             format_age(least_wait) + "; ask again and compare\n";
  } else {
    text_ += "no rank is behind: all ranks have called each operation in flight\n";
  }
  return text_;
}

}  // namespace

std::string merge(const std::vector<RankDump>& dumps) { return Merge(dumps).report(); }

}  // namespace tutti::tools
