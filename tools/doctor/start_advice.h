#pragma once

#include <string>

namespace tutti::tools::doctor {

// Returns advice for a host that did not start. `failure` is the launcher's description of the
// failure.
std::string start_advice(const std::string& host, const std::string& failure);

}  // namespace tutti::tools::doctor
