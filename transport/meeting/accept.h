#pragma once

#include "core/descriptor.h"

namespace tutti::meeting {

// Accepts the next connection of a listening socket that does not block. The connection does not block
// either. If there is none, `error` is EAGAIN. If `is_scarcity(error)`, connections wait in the kernel until
// this process has room for them. Any other error concerns only a connection that has ended already.
Descriptor accept_next(int listener, int& error);

// Returns whether an errno value means a lack of descriptors or memory, so that another attempt a little
// later may succeed.
bool is_scarcity(int error);

}  // namespace tutti::meeting
