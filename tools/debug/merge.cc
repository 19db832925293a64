#include "tools/debug/merge.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tools/debug/waits.h"

namespace tutti::tools {

namespace {

using Communicator = RankDump::Communicator;
using Operation = RankDump::Operation;

// A rank's view of a communicator.
struct View {
  const RankDump* dump;
  const Communicator* communicator;

  const Operation* find(std::uint64_t number) const {
    for (const Operation& operation : communicator->operations) {
      if (operation.number == number) return &operation;
    }
    return nullptr;
  }
  // The earliest collective in flight.
  const Operation* running() const {
    const auto found = std::ranges::find_if(communicator->operations, &Operation::running);
    return found == communicator->operations.end() ? nullptr : &*found;
  }
  const Operation* last_over() const {
    const Operation* last = nullptr;
    for (const Operation& operation : communicator->operations) {
      if (!operation.running) last = &operation;
    }
    return last;
  }
};

struct Group {
  std::uint64_t context = 0;
  std::vector<int> ranks;
  std::map<int, View> views;  // by world rank
};

// Ranks are seen one after the other, by clocks that are not exact. Below this an operation says nothing yet.
constexpr double least_wait = 0.1;
// What a rank had to answer a question; one that did not has been where it is for at least as long.
constexpr double unanswered = 1;

// As floating-point numbers, of which any two have a difference.
double seconds_between(std::int64_t from_us, std::int64_t to_us) {
  return std::max(0.0, static_cast<double>(to_us) - static_cast<double>(from_us)) / 1e6;
}

std::string format_age(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f s", seconds);
  return text;
}

// For how many seconds the operation of a rank is known to have lasted when the other one, who had not come,
// was seen. The other's dump may be the earlier one; hosts' clocks cannot be compared.
double known_wait(const RankDump& waiting, const Operation& operation, const RankDump* other) {
  const double age = operation.issued_us != 0 ? seconds_between(operation.issued_us, waiting.time_us)
                     : waiting.progress       ? 0
                                              : unanswered;
  const bool comparable = other != nullptr && other->host == waiting.host;
  return comparable ? age - seconds_between(other->time_us, waiting.time_us) : age;
}

std::string numbered(const Operation& operation) {
  return "#" + std::to_string(operation.number) + " " + operation.call;
}

std::string plural(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_ranks(ranks);
}

std::string plural(const std::set<int>& ranks) { return plural(std::vector(ranks.begin(), ranks.end())); }

class Merge {
 public:
  explicit Merge(const std::vector<RankDump>& dumps);
  std::string report();

 private:
  bool quiet(const Group& group) const;
  void describe(const Group& group);
  bool find_mismatch(const Group& group);
  void find_waits(const Group& group);
  void transfers_of(const Group& group);
  void add_wait(const RankDump& waiting, const Operation& operation, int other, const std::string& what);
  void name_the_late();
  void name_a_circle();
  void name_the_missing();
  double seconds_apart() const;
  static std::string situation(const View& view, double& age);
  std::string name(int rank) const;
  std::string state_of(int rank) const;

  const std::vector<RankDump>& dumps_;
  std::map<int, const RankDump*> by_rank_;
  std::map<int, std::string> names_;  // of ranks that others wait for
  std::map<std::pair<std::uint64_t, std::vector<int>>, Group> groups_;
  std::vector<Wait> waits_;
  std::string text_;
  bool something_ = false;  // to be said beyond where the ranks are
  bool moments_ = false;    // ranks differ in where they are, but not for long enough
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

// Nothing is in flight, nothing has failed, and all ranks have called equally much.
bool Merge::quiet(const Group& group) const {
  std::set<std::uint64_t> issued;
  for (const auto& [rank, view] : group.views) {
    issued.insert(view.communicator->issued);
    const bool moving = std::ranges::any_of(view.communicator->transfers, &Operation::running);
    if (view.communicator->status != "ok" || view.running() != nullptr || moving) return false;
  }
  return issued.size() <= 1;
}

// What a rank does in a communicator, and for how many seconds (0: not known).
std::string Merge::situation(const View& view, double& age) {
  const auto since = [&](std::int64_t time_us) {
    return time_us == 0 ? 0 : seconds_between(time_us, view.dump->time_us);
  };
  if (const Operation* running = view.running()) {
    age = since(running->issued_us);
    return "in " + numbered(*running);
  }
  const Operation* last = view.last_over();
  age = last == nullptr ? 0 : since(last->ended_us);
  return last == nullptr ? "has called nothing"
                         : (last->failed ? "failed in " : "has left ") + numbered(*last);
}

void Merge::describe(const Group& group) {
  text_ += "communicator " + std::to_string(group.context) + " of " + plural(group.ranks) + "\n";
  struct Place {
    std::vector<int> ranks;
    double longest = 0;
  };
  std::map<std::string, Place> places;
  std::map<std::string, std::vector<int>> failures;
  std::vector<int> silent, elsewhere;
  for (const int rank : group.ranks) {
    const auto found = group.views.find(rank);
    if (found == group.views.end()) {
      (by_rank_.contains(rank) ? elsewhere : silent).push_back(rank);
      continue;
    }
    double age = 0;
    Place& place = places[situation(found->second, age)];
    place.ranks.push_back(rank);
    place.longest = std::max(place.longest, age);
    const std::string& status = found->second.communicator->status;
    if (status != "ok") failures[status].push_back(rank);
  }
  for (const auto& [what, place] : places) {
    text_ += "  " + plural(place.ranks) + ": " + what;
    if (place.longest > 0) {
      const std::string age = format_age(place.longest);
      text_ += what.starts_with("in ") ? ", for " + age : ", " + age + " ago";
    }
    text_ += "\n";
  }
  if (!silent.empty()) text_ += "  " + plural(silent) + ": no dump\n";
  if (!elsewhere.empty()) text_ += "  " + plural(elsewhere) + ": not in it yet, or not any more\n";
  for (const auto& [status, ranks] : failures) text_ += "  " + plural(ranks) + ": " + status + "\n";
}

// The first number at which ranks have called different things; then who is behind does not matter.
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

// What a rank for which others wait, and which waits for nobody, does instead.
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
    // Not every operation's end is known, but none is before those of earlier ones.
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
  std::string text = "the last it did was " + numbered(*last);
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

// Those without a dump that no wait leads to: when a communicator has failed, nobody in it knows any more
// whom it waited for.
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
    if (quiet(group)) continue;
    describe(group);
    if (!find_mismatch(group)) find_waits(group);
    transfers_of(group);
  }
  const bool idle = text_.empty();
  name_the_late();
  name_a_circle();
  name_the_missing();
  if (idle) {
    text_ = std::string("nothing is in flight, and ") + (something_ ? "these" : "all") +
            " ranks have called equally much\n" + text_;
  } else if (something_) {
    return text_;
  } else if (moments_) {
    text_ += "nobody is seen to be stuck: the ranks were seen at different moments, " +
             format_age(seconds_apart()) + " apart, and none was seen to wait for another one for " +
             format_age(least_wait) + "; ask again and compare\n";
  } else {
    text_ += "nobody is behind: each operation in flight has been called by all of its ranks\n";
  }
  return text_;
}

}  // namespace

std::string format_ranks(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == std::int64_t{ranks[last]} + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i) text += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string merge(const std::vector<RankDump>& dumps) { return Merge(dumps).report(); }

}  // namespace tutti::tools
