#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <tutti/address.h>
#include <tutti/status.h>

#include "core/descriptor.h"

namespace tutti::meeting {

// Makes a TCP socket that listens on exactly the literal address `host`. The port is the first free port of
// the range, or any port if `first_port` is zero. The socket is non-blocking. `prepare` is called with each
// socket before it listens, and may set options that its connections inherit. Error messages begin with
// `who`. The error is `resource_exhausted` if no port of the range is free, or if this process lacks
// descriptors or memory. Any other error is `invalid_argument`.
Result<Descriptor> listen_on(const std::string& who, const std::string& host, std::uint16_t first_port,
                             std::uint16_t last_port, const std::function<void(int)>& prepare = {});

// Begins to connect a TCP socket, which is non-blocking. `prepare` is called with the socket before it
// connects. `error` is zero or an errno. EINPROGRESS means that the socket becomes writable when the attempt
// has ended.
Descriptor begin_connect(const SocketAddress& address, int& error,
                         const std::function<void(int)>& prepare = {});
// Returns the errno with which an attempt has ended, or zero if it has succeeded.
int connect_result(int descriptor);
// These return the address of one end of a socket, or nothing if it has none.
std::optional<SocketAddress> local_address(int descriptor);
std::optional<SocketAddress> remote_address(int descriptor);
// Sets the options of an established TCP connection: small writes leave at once, and dead hosts are noticed
// eventually.
void tune(int descriptor);

// Accepts the next connection of a non-blocking listening socket. The connection is non-blocking,
// too. If no connection is waiting, `error` is EAGAIN. If `is_scarcity(error)` is true, connections
// wait in the kernel until this process has room for them. Any other error concerns only a
// connection that has ended already.
Descriptor accept_next(int listener, int& error);

// Returns whether an errno value means a lack of descriptors or memory, so that another attempt a little
// later may succeed.
bool is_scarcity(int error);

}  // namespace tutti::meeting
