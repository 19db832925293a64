#pragma once

#include <string>
#include <vector>

#include <tutti/status.h>

#include "rendezvous/launch/launch.h"

namespace tutti {

// Finds the launch in these sources, in this order: the arguments, the URL, TUTTI_*, RANK and
// WORLD_SIZE, OMPI_COMM_WORLD_*, PMI_*, SLURM_* (in a job step), JOB_COMPLETION_INDEX, NODES_IPS.
// The arguments, the URL and TUTTI_* must not contradict each other. If they give rank and size but
// no place to meet, MASTER_ADDR and MASTER_PORT give the place. If they do not give rank and size,
// `discover` takes the missing values from the first other source that provides all of them. An
// empty variable counts as not set. If nothing is set and there is no URL, the world is this
// process alone.
//
// Fails with `invalid_argument`. The error names a variable and its wrong value, or two settings that
// contradict each other. If the sources are incomplete, the error lists what was found, and what each source
// lacks. `own_addresses` are the addresses of this host. They serve to find this host in NODES_IPS.
Result<Launch> discover(const LaunchArguments& arguments, const Environment& environment,
                        const std::vector<std::string>& own_addresses = {});

// Finds the launch with the environment of this process and the addresses of its host.
Result<Launch> discover(const LaunchArguments& arguments = {});

Environment environment_of_process();

}  // namespace tutti
