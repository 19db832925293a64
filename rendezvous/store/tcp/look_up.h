#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tutti/address.h>
#include <tutti/deadline.h>
#include <tutti/status.h>

namespace tutti::tcp {

// `look_up` is `resolve` for a process that may be interrupted: it calls `interrupted` a few times a second.
// Once `interrupted` returns true, `look_up` fails with `aborted` and no longer waits for the name service.
Result<std::vector<SocketAddress>> look_up(const std::string& host, std::uint16_t port, Deadline deadline,
                                           const std::function<bool()>& interrupted);

}  // namespace tutti::tcp
