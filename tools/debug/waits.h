#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tutti::tools {

// A `Wait` is an edge in the wait graph of a job: one rank waits for another rank in an operation.
struct Wait {
  int from;
  int to;
  std::string what;
};

// `Reasons` maps each operation to the ranks that wait in it.
using Reasons = std::map<std::string, std::set<int>>;

// Returns the ranks that others wait for and that wait for no rank themselves. The result maps each
// such rank to the operations in which others wait for it.
std::map<int, Reasons> awaited_only(const std::vector<Wait>& waits);

// Returns a cycle of waits: each rank waits for the next, and the last one waits for the first. The
// search looks only at the first wait of each rank. The result is empty if the search finds no
// cycle.
std::vector<Wait> find_circle(const std::vector<Wait>& waits);

}  // namespace tutti::tools
