#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tutti::tools {

// A `Wait` is an edge in the graph of a job that hangs: a rank waits for another one in an operation.
struct Wait {
  int from;
  int to;
  std::string what;
};

// `Reasons` maps each operation to the ranks that wait in it.
using Reasons = std::map<std::string, std::set<int>>;

// Returns the ranks that others wait for and that wait for none, each with the operations in which the others
// wait.
std::map<int, Reasons> awaited_only(const std::vector<Wait>& waits);

// Returns the first cycle of ranks that wait for each other, or nothing. The search follows each rank's first
// wait until it comes to a rank that does not wait, or closes a cycle.
std::vector<Wait> find_circle(const std::vector<Wait>& waits);

}  // namespace tutti::tools
