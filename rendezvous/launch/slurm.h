#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

// Returns the first host of a Slurm node list: "n[08-11,15],m3" gives "n08". Returns an empty text if
// `node_list` is not such a list.
std::string first_slurm_host(std::string_view node_list);

// Returns a port for a job step. All ranks of the step compute the same port without communication. It lies
// outside the range from which the kernel hands out ports. If two jobs get the same port, users must set
// MASTER_PORT.
std::uint16_t slurm_port(std::string_view job_id, std::string_view step_id);

}  // namespace tutti
