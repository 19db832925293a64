#pragma once

#include <string>

#include "tools/doctor/examined.h"

namespace tutti::tools::doctor {

// Returns the value of TUTTI_SOCKET_IFNAME by which all hosts that were tested reach each other: the name of
// an interface, or a network. Returns an empty text if there is none.
std::string find_filter(const Examined& examined);

}  // namespace tutti::tools::doctor
