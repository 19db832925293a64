#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tutti::tools {

// A `Wait` says which rank waits for which, and in what: an edge of the graph of a job that hangs.
struct Wait {
  int from;
  int to;
  std::string what;
};

// Operations, each with the ranks that are in it.
using Reasons = std::map<std::string, std::set<int>>;

// The ranks that others wait for and that wait for none, each with the operations in which the others wait.
std::map<int, Reasons> awaited_only(const std::vector<Wait>& waits);

// The first circle of ranks that wait for each other. Following each rank's first wait ends at a rank that
// does not wait, or closes a circle. Empty if there is none.
std::vector<Wait> find_circle(const std::vector<Wait>& waits);

}  // namespace tutti::tools
