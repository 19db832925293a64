#pragma once

#include <string>
#include <vector>

#include "tools/doctor/examined.h"

namespace tutti::tools::doctor {

// A `Finding` is what a user should know about the hosts.
struct Finding {
  std::string what = {};   // a sentence that names the hosts; may have several lines
  std::string mend = {};   // the command or variable that mends it; may be empty for a note
  bool is_problem = true;  // if not, it is only a note
};

// Returns everything that is wrong or worth knowing, the problems first. All texts are printable.
std::vector<Finding> find_all(const Examined& examined);

// These return the findings about one subject.
std::vector<Finding> find_in_hosts(const Examined& examined);   // hosts that did not come up, limits, clocks
std::vector<Finding> find_unreached(const Examined& examined);  // interfaces, connections
std::vector<Finding> find_mtus(const Examined& examined);
std::vector<Finding> find_notes(const Examined& examined);

}  // namespace tutti::tools::doctor
