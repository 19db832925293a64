#pragma once

#include <string>
#include <vector>

#include "tools/doctor/examined.h"
#include "tools/doctor/findings.h"

namespace tutti::tools::doctor {

// Returns the tables of the hosts, of their interfaces and of the connections between them. With
// more than eight hosts, one line sums up all connections of a host, unless `all_pairs` is true.
std::string tables(const Examined& examined, bool all_pairs);

// Returns the findings in words: the number of problems, a paragraph for each, and then the notes.
std::string verdict(const std::vector<Finding>& findings);

}  // namespace tutti::tools::doctor
