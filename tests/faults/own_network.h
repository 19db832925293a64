#pragma once

#include <string>

namespace tutti::test {

// Moves this thread, and the processes that it starts, into a new network namespace with a loopback
// interface. Returns an empty text, or the reason why the move failed. `port_range`, such as "40000
// 40015", gives the local ports for outgoing connections. An empty `port_range` means the kernel's
// usual range.
std::string enter_own_network(const std::string& port_range = {});

}  // namespace tutti::test
