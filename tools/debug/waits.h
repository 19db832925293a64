#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tutti::tools {

// Who waits for whom, and what for: an edge of the graph in which a job that hangs is looked at.
struct Wait {
  int from;
  int to;
  std::string what;
};

// What ranks are in, and which ranks are in each.
using Reasons = std::map<std::string, std::set<int>>;

// Those that others wait for and that wait for nobody, and what each of the others waits in.
std::map<int, Reasons> awaited_only(const std::vector<Wait>& waits);

// The first circle of ranks that wait for each other: following each rank's first wait ends at who waits for
// nobody, or goes round. Empty if there is none.
std::vector<Wait> find_circle(const std::vector<Wait>& waits);

}  // namespace tutti::tools
