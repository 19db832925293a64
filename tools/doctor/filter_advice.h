#pragma once

#include <string>

#include "tools/doctor/examined.h"

namespace tutti::tools::doctor {

// Returns a value of TUTTI_SOCKET_IFNAME with which all tested hosts reach each other. The value is
// the name of an interface, or a network. The result is empty if there is no such value.
std::string find_filter(const Examined& examined);

}  // namespace tutti::tools::doctor
