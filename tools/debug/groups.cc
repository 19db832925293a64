#include "tools/debug/groups.h"

#include <algorithm>
#include <cstdio>

namespace tutti::tools {
namespace {

// Names the operation that a rank is in, or its last operation if it is in none. Sets `age` to the
// seconds since the current operation began or the last operation ended, or to 0 if that time is
// unknown.
std::string situation(const View& view, double& age) {
  const auto since = [&](std::int64_t time_us) {
    return time_us == 0 ? 0 : seconds_between(time_us, view.dump->time_us);
  };
  if (const RankDump::Operation* running = view.running()) {
    age = since(running->issued_us);
    return "in " + numbered(*running);
  }
  const RankDump::Operation* last = view.last_over();
  age = last == nullptr ? 0 : since(last->ended_us);
  return last == nullptr ? "has called nothing"
                         : (last->failed ? "failed in " : "has left ") + numbered(*last);
}

// Puts the situation of one rank into the plural if `count` ranks share it.
std::string for_several(const std::string& what, std::size_t count) {
  const std::string singular = "has ";
  return count > 1 && what.starts_with(singular) ? "have " + what.substr(singular.size()) : what;
}

}  // namespace

const RankDump::Operation* View::running() const {
  const auto found = std::ranges::find_if(communicator->operations, &RankDump::Operation::running);
  return found == communicator->operations.end() ? nullptr : &*found;
}

const RankDump::Operation* View::last_over() const {
  const RankDump::Operation* last = nullptr;
  for (const RankDump::Operation& operation : communicator->operations) {
    if (!operation.running) last = &operation;
  }
  return last;
}

bool Group::is_quiet() const {
  std::set<std::uint64_t> issued;
  for (const auto& [rank, view] : views) {
    issued.insert(view.communicator->issued);
    const bool moving = std::ranges::any_of(view.communicator->transfers, &RankDump::Operation::running);
    if (view.communicator->status != "ok" || view.running() != nullptr || moving) return false;
  }
  return issued.size() <= 1;
}

std::string Group::describe(const std::map<int, const RankDump*>& dumps) const {
  std::string text = "communicator " + std::to_string(context) + " of " + plural(ranks) + "\n";
  struct Place {
    std::vector<int> ranks;
    double longest = 0;
  };
  std::map<std::string, Place> places;
  std::map<std::string, std::vector<int>> failures;
  std::vector<int> silent, elsewhere;
  for (const int rank : ranks) {
    const auto found = views.find(rank);
    if (found == views.end()) {
      (dumps.contains(rank) ? elsewhere : silent).push_back(rank);
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
    text += "  " + plural(place.ranks) + ": " + for_several(what, place.ranks.size());
    if (place.longest > 0) {
      const std::string age = format_age(place.longest);
      text += what.starts_with("in ") ? ", for " + age : ", " + age + " ago";
    }
    text += "\n";
  }
  if (!silent.empty()) text += "  " + plural(silent) + ": no dump\n";
  if (!elsewhere.empty()) text += "  " + plural(elsewhere) + ": not in it yet, or no longer\n";
  for (const auto& [status, failed] : failures) text += "  " + plural(failed) + ": " + status + "\n";
  return text;
}

double seconds_between(std::int64_t from_us, std::int64_t to_us) {
  return std::max(0.0, static_cast<double>(to_us) - static_cast<double>(from_us)) / 1e6;
}

std::string format_age(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f s", seconds);
  return text;
}

std::string numbered(const RankDump::Operation& operation) {
  return "#" + std::to_string(operation.number) + " " + operation.call;
}

std::string plural(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_ranks(ranks);
}

std::string plural(const std::set<int>& ranks) { return plural(std::vector(ranks.begin(), ranks.end())); }

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

}  // namespace tutti::tools
