#include "tools/debug/waits.h"

#include <algorithm>

namespace tutti::tools {

std::map<int, Reasons> awaited_only(const std::vector<Wait>& waits) {
  std::set<int> waiting;
  for (const Wait& wait : waits) waiting.insert(wait.from);
  std::map<int, Reasons> awaited;
  for (const Wait& wait : waits) {
    if (!waiting.contains(wait.to)) awaited[wait.to][wait.what].insert(wait.from);
  }
  return awaited;
}

std::vector<Wait> find_circle(const std::vector<Wait>& waits) {
  std::map<int, const Wait*> first;
  for (const Wait& wait : waits) first.emplace(wait.from, &wait);
  std::set<int> seen;
  for (const auto& [start, unused] : first) {
    std::vector<Wait> path;
    int at = start;
    while (first.contains(at) && seen.insert(at).second) {
      path.push_back(*first.at(at));
      at = path.back().to;
    }
    const auto closed = std::ranges::find(path, at, &Wait::from);
    if (closed != path.end()) return {closed, path.end()};
  }
  return {};
}

}  // namespace tutti::tools
