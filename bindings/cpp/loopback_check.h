#pragma once

#include <vector>

#include <tutti/status.h>

#include "transport/peer.h"

namespace tutti {

// Fails with `unreachable` if a rank advertises a loopback address although there are ranks on other hosts,
// which cannot reach it there. The error names the rank, its address, a rank that cannot reach it, and the
// variables that help.
Status check_loopback(const std::vector<PeerInfo>& ranks);

}  // namespace tutti
