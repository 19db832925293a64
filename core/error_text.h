#pragma once

#include <string>

namespace tutti {

// What the system says of an error of a call (errno); where descriptors have run out, also whose and by what
// limit, since whoever reads it can do something about it.
std::string error_text(int error);

}  // namespace tutti
