#pragma once

#include <string>

namespace tutti::tools {

// What may be given by name, "int8, uint8, ...", for messages about names that are none.
std::string type_names();
std::string op_names();

// " (did you mean all_reduce?)" where `known`, a list like the above, has a name that is nearly `name`; or
// nothing.
std::string did_you_mean(const std::string& name, const std::string& known);

}  // namespace tutti::tools
