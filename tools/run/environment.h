#pragma once

#include <string>
#include <vector>

#include <tutti/status.h>

#include "rendezvous/launch/environment.h"
#include "tools/run/binding.h"

namespace tutti::tools {

std::vector<std::string> to_strings(const Environment& environment);

// A `RankPlace` is what a rank needs to know about its world; see set_rank_variables.
struct RankPlace {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
};

// A `JobPlace` is what all ranks of a job have in common.
struct JobPlace {
  std::string id;
  std::string store;  // host:port, served by the launcher
  std::string master_address;
  int master_port = 0;  // a free port, on which programs may serve a store of their own
};

// Applies the -x options: "VAR=VALUE" sets a variable; "VAR", and "VAR*" for all names that begin so, keep
// the current values. Returns each "VAR" and "VAR*" for which no variable is set.
std::vector<std::string> apply_exports(Environment& environment, const std::vector<std::string>& exports);
// Returns the text that tells the user about such a "VAR" or "VAR*".
std::string missing_export(const std::string& name);

// Returns those of the launcher's variables that its ranks on other hosts get, too: TUTTI_*, and those that
// the -x options name. `environment` is the launcher's, with the -x options applied. Variables that only
// concern the launcher's host or login, such as TUTTI_BIND_ADDRESS, are passed on only if -x names them in
// full.
Environment passed_on(const Environment& environment, const std::vector<std::string>& exports);

// Sets a random token for the job, unless the user has chosen a token. It is passed in the environment and
// not on the command line, which every user of the host can read.
void provide_token(Environment& environment);

// These set tutti's own variables, and those that similar launchers set. The first sets the variables that
// all ranks of a job share, the second those of one rank.
void set_job_variables(Environment& environment, const JobPlace& job);
void set_rank_variables(Environment& environment, const RankPlace& place);

// Sets the variables of a rank that programs for Open MPI read.
void set_mpi_variables(Environment& environment, const RankPlace& place);

// Turns polling off if there are more ranks than cores, since a polling rank would then keep others from
// running. A value that the user has set stays.
void limit_spinning(Environment& environment, int local_ranks);
// Sets OMP_NUM_THREADS to a rank's share of the processors, but not to more than it is tied to, unless the
// user has set it. Without this variable each rank would start as many threads as there are processors.
void share_processors(Environment& environment, int local_ranks, const ProcessorSet& tied_to);

// Returns a free TCP port. It lies outside the range from which the kernel hands out ports, so it is likely
// to be still free when the ranks use it.
Result<int> find_free_port();

}  // namespace tutti::tools
