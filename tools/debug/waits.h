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

// Returns the ranks that others wait for but that wait for no rank themselves. Each such rank is mapped to
// the operations in which others wait for it.
std::map<int, Reasons> awaited_only(const std::vector<Wait>& waits);

// Returns the first cycle that it finds, in which each rank waits for the next, or nothing. It looks only at
// the first wait of each rank.
std::vector<Wait> find_circle(const std::vector<Wait>& waits);

}  // namespace tutti::tools
