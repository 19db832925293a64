#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/facts.h"
#include "tools/doctor/path.h"
#include "tools/doctor/usage.h"

namespace tutti::tools::doctor {

// `Clock` says how far a host's clock is ahead of ours, in seconds.
struct ClockOffset {
  double ahead = 0;
  double uncertainty = 0;
};

struct ExaminedHost {
  std::string name = {};
  std::optional<HostFacts> facts = {};  // empty if its probe has not reported them
  std::string problem = {};  // why the host did not come up, or was lost later; empty if all went well
  Usage usage = {};          // if there are facts
  std::optional<ClockOffset> clock = {};
};

// `Connection` is what one host has found out about the ways to another.
struct Connection {
  std::size_t from = 0;
  std::size_t to = 0;
  std::vector<Path> paths = {};
};

// `Examined` is all that the probes have found out.
struct Examined {
  std::vector<ExaminedHost> hosts = {};
  std::vector<Connection> connections = {};  // of the pairs that were tested, in both directions
  std::string doubt = {};  // about the address at which ranks would meet; empty if there is none
  bool all_pairs = true;   // false if there are too many hosts
};

}  // namespace tutti::tools::doctor
