#pragma once

#include <string>

namespace tutti::tools {

// These return the known names, such as "int8, uint8, ...", for messages about unknown names.
std::string type_names();
std::string op_names();

// Returns a text such as " (did you mean all_reduce?)" if the list `known` has a name similar to
// `name`. Otherwise returns an empty text.
std::string did_you_mean(const std::string& name, const std::string& known);

// Returns "no such type: flaot32 (did you mean float32?); there are: int8, uint8, ..."
std::string no_such(const std::string& what, const std::string& name, const std::string& known);

}  // namespace tutti::tools
