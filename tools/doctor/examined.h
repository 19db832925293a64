#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/facts.h"
#include "tools/doctor/path.h"
#include "tools/doctor/usage.h"

namespace tutti::tools::doctor {

// `ClockOffset` says how far a host's clock is ahead of ours, in seconds.
struct ClockOffset {
  double ahead = 0;
  double uncertainty = 0;
};

struct ExaminedHost {
  std::string name = {};
  std::optional<HostFacts> facts = {};  // empty if its probe has not reported them
  std::string problem = {};             // why the probe did not start or was lost; empty if all went well
  Usage usage = {};                     // valid only if there are facts
  std::optional<ClockOffset> clock = {};
};

// `Connection` holds the results of one host's tests of another host.
struct Connection {
  std::size_t from = 0;
  std::size_t to = 0;
  std::vector<Path> paths = {};
};

// `CardResult` is the result of a test of the RDMA devices of two hosts.
struct CardResult {
  std::size_t one = 0;
  std::size_t other = 0;
  // Why no messages pass between the devices, or why the devices cannot be tested. Empty if messages pass.
  std::string failure = {};

  // Returns whether the test failed because TUTTI_PORT_RANGE has too few ports for its ranks. Such a test
  // says nothing about the devices.
  bool lacks_ports() const { return failure.find("(TUTTI_PORT_RANGE) is free") != std::string::npos; }
};

// `Examined` holds the results of all probes.
struct Examined {
  std::vector<ExaminedHost> hosts = {};
  std::vector<Connection> connections = {};  // both directions of each tested pair
  std::vector<CardResult> cards = {};        // for the pairs of hosts whose RDMA devices were tested
  // This says why some hosts may not reach the address at which ranks would meet. It is empty if there is no
  // such doubt.
  std::string doubt = {};
  bool all_pairs = true;  // false if there are too many hosts to test all pairs
};

}  // namespace tutti::tools::doctor
