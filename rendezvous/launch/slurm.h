#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

// Returns the hosts of a Slurm node list: "n[08-10,15],m3" gives "n08", "n09", "n10", "n15" and "m3". Returns
// no host if `node_list` is not such a list.
std::vector<std::string> expand_slurm_hosts(std::string_view node_list);

// Returns one number for each host of a job, from SLURM_TASKS_PER_NODE and the like: "2(x3),1" gives 2, 2, 2
// and 1. Returns no number if `counts` has another form.
std::vector<int> expand_slurm_counts(std::string_view counts);

// Returns whether `step_id` is the number of a step whose tasks are ranks. A batch script, and a shell that
// `salloc` starts on a node of the job, are steps, too, but not ranks. In some versions of Slurm, the
// SLURM_STEP_ID of such a step is a number that no ordinary step has.
bool in_slurm_step(std::string_view step_id);

// Returns a port for a job step. All ranks of the step compute the same port without communication. It lies
// outside the range from which the kernel hands out ports. If two jobs get the same port, users must set
// MASTER_PORT.
std::uint16_t slurm_port(std::string_view job_id, std::string_view step_id);

}  // namespace tutti
