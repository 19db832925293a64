#pragma once

#include <string>
#include <vector>

#include <tutti/status.h>

#include "rendezvous/launch/environment.h"
#include "tools/run/binding.h"

namespace tutti::tools {

std::vector<std::string> to_strings(const Environment& environment);

// A `RankPlace` holds the facts that a rank needs about its world; see set_rank_variables.
struct RankPlace {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
};

// A `JobPlace` holds the facts that all ranks of a job share.
struct JobPlace {
  std::string id;
  std::string store;  // host:port, where the ranks meet
  std::string master_address;
  int master_port = 0;  // a free port on which a program may serve its own store
};

// Applies the -x options. "VAR=VALUE" sets a variable. "VAR" keeps the current value, and "VAR*"
// keeps the values of all variables whose names begin with VAR. Returns each "VAR" and "VAR*" that
// matches no variable.
std::vector<std::string> apply_exports(Environment& environment, const std::vector<std::string>& exports);
// Returns a message about a "VAR" or "VAR*" that matches no variable.
std::string missing_export(const std::string& name);

// Returns the launcher's variables that ranks on other hosts also get. These are TUTTI_* and the
// variables that the -x options name. `environment` is the launcher's environment after the -x
// options. Some variables concern only the launcher's host or login, such as TUTTI_BIND_ADDRESS.
// Such a variable is passed on only if an -x option has its full name.
Environment passed_on(const Environment& environment, const std::vector<std::string>& exports);

// Sets a random token for the job, unless the user has chosen a token. The environment carries the
// token, because every user of the host can read the command line.
void provide_token(Environment& environment);

// These functions set tutti's own variables, and those that similar launchers set. The first function
// sets the variables that all ranks share. The second sets those of one rank.
void set_job_variables(Environment& environment, const JobPlace& job);
void set_rank_variables(Environment& environment, const RankPlace& place);

// Sets the variables of a rank that programs for Open MPI read.
void set_mpi_variables(Environment& environment, const RankPlace& place);

// Turns polling off if this host has more ranks than processors, since a polling rank would then keep
// other ranks from running. It does not change a value that the user has set.
void limit_spinning(Environment& environment, int local_ranks);
// Sets OMP_NUM_THREADS to a rank's share of the processors, unless the user has set it or the host has
// only one rank. The value is at most the number of processors to which the rank is tied. Without this
// variable, each rank would start one thread for each processor.
void share_processors(Environment& environment, int local_ranks, const ProcessorSet& tied_to);

// Returns a free TCP port. It lies outside the range from which the kernel picks ports, so it is
// probably still free when the ranks use it.
Result<int> find_free_port();

}  // namespace tutti::tools
