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

// Returns the first cycle of ranks that wait for each other, or nothing. The search follows each rank's first
// wait until it reaches a rank that does not wait, or closes a cycle.
std::vector<Wait> find_circle(const std::vector<Wait>& waits);

}  // namespace tutti::tools
