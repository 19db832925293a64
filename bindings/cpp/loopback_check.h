#pragma once

#include <vector>

#include <tutti/status.h>

#include "transport/peer.h"

namespace tutti {

// Fails with `unreachable` if a rank advertises a loopback address although ranks on other hosts
// must reach it. The error names the rank, its address, a rank that cannot reach it, and the
// variables that help.
Status check_loopback(const std::vector<PeerInfo>& ranks);

}  // namespace tutti
