#pragma once

#include <string>
#include <vector>

#include <tutti/status.h>

#include "rendezvous/launch/environment.h"

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
  int master_port = 0;  // a free port, where programs that do not use tutti's store serve their own
};

// Carries out -x: "VAR=VALUE" sets a variable; "VAR" keeps its value, and is returned if it has none.
std::vector<std::string> apply_exports(Environment& environment, const std::vector<std::string>& exports);

// Sets a token that no other user knows, unless the user has one for this job. It goes into the environment,
// since every user of the host can read command lines.
void provide_token(Environment& environment);

// Sets the TUTTI_* variables of a rank, and those of all similar launchers.
void set_job_variables(Environment& environment, const JobPlace& job);
void set_rank_variables(Environment& environment, const RankPlace& place);

// Turns polling off if there are more ranks than cores: there it only keeps other ranks from running. Values
// that the user has set stay.
void limit_spinning(Environment& environment, int local_ranks);
// Sets OMP_NUM_THREADS, unless it is set, to a rank's share of the processors. Otherwise each of several
// ranks would take all of them.
void share_processors(Environment& environment, int local_ranks);

// A free TCP port outside the range from which the kernel hands out ports by itself, so that it stays free
// until the ranks use it.
Result<int> find_free_port();

}  // namespace tutti::tools
