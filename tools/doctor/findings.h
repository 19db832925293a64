#pragma once

#include <string>
#include <vector>

#include "tools/doctor/examined.h"

namespace tutti::tools::doctor {

// A `Finding` is a fact about the hosts that a user should know.
struct Finding {
  std::string what = {};  // a sentence that names the hosts; may have several lines
  // The command or variable that solves the problem; may be empty for a note.
  std::string mend = {};
  bool is_problem = true;  // false for a note
};

// Returns all problems, and then all notes. All texts are printable.
std::vector<Finding> find_all(const Examined& examined);

// Each of these functions returns the findings about one subject.
std::vector<Finding> find_in_hosts(const Examined& examined);   // failed hosts, limits, clocks
std::vector<Finding> find_unreached(const Examined& examined);  // interfaces, connections
std::vector<Finding> find_mtus(const Examined& examined);
std::vector<Finding> find_in_cards(const Examined& examined);  // RDMA devices
std::vector<Finding> find_notes(const Examined& examined);

}  // namespace tutti::tools::doctor
