#include "bindings/cpp/waiting.h"

#include <algorithm>
#include <thread>

#include <unistd.h>

namespace tutti {

Cores count_cores() {
  return {.of_rank = static_cast<long>(std::max(1u, std::thread::hardware_concurrency())),
          .of_machine = sysconf(_SC_NPROCESSORS_ONLN)};
}

DriverOptions waiting_of(const PeerInfo& self, std::span<const PeerInfo> peers, const Cores& cores,
                         std::chrono::nanoseconds spin) {
  long on_host = 0, on_machine = 0;
  for (const PeerInfo& peer : peers) {
    if (peer.boot_id != self.boot_id) continue;
    ++on_machine;
    if (peer.host == self.host) ++on_host;
  }
  DriverOptions options;
  options.spin = spin;
  if (on_host > cores.of_rank || on_machine > cores.of_machine) options.spin = std::chrono::nanoseconds(0);
  // Hosts on one machine, such as containers, reach each other through the kernel. A message to a rank that
  // sleeps must first wake the rank, and a collective consists of several messages, one after the other. So
  // ranks that take turns on the cores should stay awake until a small collective is over.
  if (on_machine > cores.of_machine && on_machine > on_host) {
    options.yield = std::chrono::milliseconds(2);
    options.short_slices = true;
  }
  return options;
}

}  // namespace tutti
