#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

// The first host of a Slurm node list: "n[08-11,15],m3" gives "n08". Empty if it is none.
std::string first_slurm_host(std::string_view node_list);

// A port for a job step whose ranks all have to choose the same one without talking: outside the range
// from which the kernel hands out ports. Two jobs may collide; MASTER_PORT is there to be set.
std::uint16_t slurm_port(std::string_view job_id, std::string_view step_id);

}  // namespace tutti
