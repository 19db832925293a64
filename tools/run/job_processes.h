#pragma once

#include <string>

namespace tutti::tools {

// Kills the agents and the ranks of a job on this host, and the processes that they have started.
// These are all processes of this user that are an agent of the job or have the job's TUTTI_JOB_ID.
// They must also be in the network namespace of this process, because tests and containers let
// several namespaces on one machine stand for several hosts. Returns true as soon as all these
// processes have ended, or false after five seconds.
bool end_processes_of(const std::string& job);

}  // namespace tutti::tools
