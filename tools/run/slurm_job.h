#pragma once

#include <map>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "rendezvous/launch/environment_sources.h"
#include "tools/run/hostfile.h"

namespace tutti::tools {

// A `SlurmJob` is what the variables of a Slurm job, in a batch script or in a shell of `salloc`, say.
struct SlurmJob {
  std::vector<ListedHost> hosts;  // none outside of a Slurm job, and in one of its steps
  // For hosts on which a step of one task would get too few of the job's GPUs: the number that it must ask
  // for.
  std::map<std::string, int> gpus;
};

// Fails if the variables make no sense, or if the job is heterogeneous.
Result<SlurmJob> read_slurm_job(launch::Reader& reader);

// Returns the environment for an `srun` that starts an agent: `environment` without the variables that srun
// takes for options. A batch script has many of them, and they are meant for the job's ranks. With some of
// them, srun fails, the agent gets only a part of its host, or the agent's output goes elsewhere.
Environment without_srun_options(Environment environment);

}  // namespace tutti::tools
