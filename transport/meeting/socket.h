#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <tutti/status.h>

#include "core/descriptor.h"

namespace tutti::meeting {

// Makes a TCP socket that listens on exactly the literal address `host`, at the first free port of the range,
// or at any port if `first_port` is zero. The socket is non-blocking. `prepare` is called with each socket
// before it listens, and may set options that its connections inherit. Error messages begin with `who`. The
// error is `resource_exhausted` if no port of the range is free, or if this process lacks descriptors or
// memory. Any other error is `invalid_argument`.
Result<Descriptor> listen_on(const std::string& who, const std::string& host, std::uint16_t first_port,
                             std::uint16_t last_port, const std::function<void(int)>& prepare = {});

// Accepts the next connection of a non-blocking listening socket. The connection is non-blocking, too. If no
// connection is waiting, `error` is EAGAIN. If `is_scarcity(error)`, connections wait in the kernel until
// this process has room for them. Any other error concerns only a connection that has ended already.
Descriptor accept_next(int listener, int& error);

// Returns whether an errno value means a lack of descriptors or memory, so that another attempt a little
// later may succeed.
bool is_scarcity(int error);

}  // namespace tutti::meeting
