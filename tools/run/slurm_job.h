#pragma once

#include <map>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "rendezvous/launch/environment_sources.h"
#include "tools/run/hostfile.h"

namespace tutti::tools {

// A `SlurmJob` holds the contents of a Slurm job's variables, as a batch script or a shell of
// `salloc` has them.
struct SlurmJob {
  std::vector<ListedHost> hosts;  // empty outside of a Slurm job, and inside one of its steps
  // This maps a host to the number of GPUs that a step with one task must request there. It lists
  // only the hosts on which such a step would otherwise get too few of the job's GPUs.
  std::map<std::string, int> gpus;
};

// Fails if the variables make no sense, or if the job is heterogeneous.
Result<SlurmJob> read_slurm_job(launch::Reader& reader);

// Returns the environment for an `srun` that starts an agent. It lacks the variables that srun
// reads as options. A batch script has many of them, and they are meant for the job's ranks. With
// some of them, srun fails, the agent gets only a part of its host, or the agent's output goes
// elsewhere.
Environment without_srun_options(Environment environment);

}  // namespace tutti::tools
