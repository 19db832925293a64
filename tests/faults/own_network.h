#pragma once

#include <string>

namespace tutti::test {

// From now on this thread, and what it starts, is in a network namespace of its own, with a loopback
// interface. Empty, or why there is none. `port_range`: the local ports for connections; empty: the usual
// ones.
std::string enter_own_network(const std::string& port_range = {});

}  // namespace tutti::test
