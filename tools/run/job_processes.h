#pragma once

#include <string>

namespace tutti::tools {

// Kills the agents and the ranks of a job on this host, and the processes that they have started: all
// processes of the same user and network namespace that have the job's TUTTI_JOB_ID, or are an agent of the
// job. (Tests and containers make several hosts of one machine, and each has a network namespace of its own.)
// Returns once none is left, or after five seconds. The result is whether none is left.
bool end_processes_of(const std::string& job);

}  // namespace tutti::tools
