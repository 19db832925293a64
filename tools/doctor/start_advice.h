#pragma once

#include <string>

namespace tutti::tools::doctor {

// Returns what mends the failure of a host to come up, as the launcher describes it.
std::string start_advice(const std::string& host, const std::string& failure);

}  // namespace tutti::tools::doctor
