#pragma once

#include <memory>
#include <optional>
#include <string>

#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/topology.h"
#include "tools/command_line.h"

namespace tutti::tools {

// `MachineOptions` are the command-line options that describe a machine. A name that ends in `_us` or `_ns`
// is in microseconds or nanoseconds.
struct MachineOptions {
  int hosts = 1;
  std::string transport;  // empty for the transport that ranks of one host would choose
  bool measure = false;
  bool job = false;
  int cores = -1;
  std::optional<double> alpha_us, beta_ns, gamma_ns, far_alpha_us, far_beta_ns;
};

struct Machine {
  CostModel model;
  // The transport that connects the ranks of one host.
  std::string transport = {};
  std::string source = {};  // describes the origin of the costs
  int rank = 0;             // the rank of this process if it belongs to a job, otherwise 0
  // The topology of the job, if this process is one of its ranks.
  std::shared_ptr<const Topology> topology = nullptr;
};

void declare(CLI::App& app, MachineOptions& options);

// Returns the costs that tutti ships with. If `measure` is set, two ranks in this process measure
// the costs instead. A cost that the user gives as an option replaces the shipped or measured cost.
// If `job` is set, the ranks of this process's job measure all costs, and the other options have no
// effect. Throws an exception if measuring fails.
Machine machine_of(const MachineOptions& options);

// Places `ranks` ranks on `hosts` hosts as evenly as possible. Each host has consecutive ranks. Returns null
// for one host.
std::unique_ptr<const Topology> topology_of(int ranks, int hosts);

}  // namespace tutti::tools
