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
  std::string transport;  // empty: the transport that ranks of one host would choose
  bool measure = false;
  bool job = false;
  int cores = -1;
  std::optional<double> alpha_us, beta_ns, gamma_ns, far_alpha_us, far_beta_ns;
};

struct Machine {
  CostModel model;
  std::string transport = {};  // between the ranks of a host; empty if they are a job's
  std::string source = {};     // says where the costs are from
  int rank = 0;                // of this process, if it is a rank of a job
  std::shared_ptr<const Topology> topology = nullptr;  // of the job, if this process is one of its ranks
};

void declare(CLI::App& app, MachineOptions& options);

// Returns the costs that tutti ships with. With `measure`, two ranks in this process measure the costs
// instead; with `job`, the ranks of this process's job do. A cost that the user gives as an option replaces
// the shipped or measured one. Throws `Error` if measuring fails.
Machine machine_of(const MachineOptions& options);

// Places `ranks` ranks on `hosts` hosts as evenly as possible. Each host has consecutive ranks. Returns null
// for one host.
std::unique_ptr<const Topology> topology_of(int ranks, int hosts);

}  // namespace tutti::tools
