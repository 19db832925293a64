#pragma once

#include <string>

namespace tutti::tools {

// What may be given by name, "int8, uint8, ...", for messages about names that are none.
std::string type_names();
std::string op_names();

}  // namespace tutti::tools
