#pragma once

#include <chrono>
#include <span>

#include "transport/driver/driver.h"
#include "transport/peer.h"

namespace tutti {

// `Cores` says how many processors there are.
struct Cores {
  long of_rank = 1;     // those that this rank may use
  long of_machine = 1;  // those of the whole machine, which several hosts (such as containers) may share
};

Cores count_cores();

// Returns how long the threads of `self` spin and yield before they sleep. `spin` is what the user has
// chosen. Threads do not spin if there are more ranks than cores, because spinning only helps a rank that has
// its own core.
DriverOptions waiting_of(const PeerInfo& self, std::span<const PeerInfo> peers, const Cores& cores,
                         std::chrono::nanoseconds spin);

}  // namespace tutti
