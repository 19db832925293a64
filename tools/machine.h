#pragma once

#include <memory>
#include <optional>
#include <string>

#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/topology.h"
#include "tools/command_line.h"

namespace tutti::tools {

// `MachineOptions` describe the machine that a question is about, in units that people use.
struct MachineOptions {
  int hosts = 1;
  std::string transport;  // empty: the one that ranks of a host would choose
  bool measure = false;
  int cores = -1;
  std::optional<double> alpha_us, beta_ns, gamma_ns, far_alpha_us, far_beta_ns;
};

struct Machine {
  CostModel model;
  std::string transport;  // between the ranks of a host
  std::string source;     // of the costs, in words
};

void declare(CLI::App& app, MachineOptions& options);

// Returns shipped costs, or those of this machine, as measured by two ranks that meet here; options replace
// either. Throws `Error` if measuring fails.
Machine machine_of(const MachineOptions& options);

// Places `ranks` ranks on that many hosts, as evenly as possible, those of a host one after the other; null
// for one host.
std::unique_ptr<const Topology> topology_of(int ranks, int hosts);

}  // namespace tutti::tools
