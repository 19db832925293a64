#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tutti::tools {

// A `Wait` is an edge in the wait graph of a job: one rank waits for another in an operation.
struct Wait {
  int from;
  int to;
  std::string what;
};

// `Reasons` maps each operation to the ranks that wait in it.
using Reasons = std::map<std::string, std::set<int>>;

// Returns the ranks that others wait for, except those that themselves wait for another rank. Each such rank
// is mapped to the operations in which others wait for it.
std::map<int, Reasons> awaited_only(const std::vector<Wait>& waits);

// Returns a cycle of waits: each rank waits for the next, and the last one waits for the first. Returns
// nothing if it finds no cycle. It looks only at the first wait of each rank.
std::vector<Wait> find_circle(const std::vector<Wait>& waits);

}  // namespace tutti::tools
