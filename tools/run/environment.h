#pragma once

#include <string>
#include <vector>

#include <tutti/status.h>

#include "rendezvous/launch/environment.h"

namespace tutti::tools {

std::vector<std::string> to_strings(const Environment& environment);

// What a rank must know about its world; see set_rank_variables.
struct RankPlace {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
};

// What all ranks of a job have in common.
struct JobPlace {
  std::string id;
  std::string store;  // host:port, served by the launcher
  std::string master_address;
  int master_port = 0;  // free: programs that know nothing of our store serve their own there
};

// Carries out -x: "VAR=VALUE" sets; "VAR" keeps what is there, and is returned if there is nothing.
std::vector<std::string> apply_exports(Environment& environment, const std::vector<std::string>& exports);

// A token that nobody else knows, unless the user has one for this job. By the environment: command lines can
// be read by everybody on the host.
void provide_token(Environment& environment);

// Sets the variables that every launcher of this kind sets, and ours.
void set_job_variables(Environment& environment, const JobPlace& job);
void set_rank_variables(Environment& environment, const RankPlace& place);

// Where more ranks than cores wait for each other, polling only keeps the others from running. What the user
// has set stays.
void limit_spinning(Environment& environment, int local_ranks);
// OMP_NUM_THREADS, unless it is set: a rank's share of the processors. Each of several ranks would take all
// of them otherwise.
void share_processors(Environment& environment, int local_ranks);

// A TCP port on which nobody listens, outside of the range from which the kernel hands out ports by itself,
// so that it stays free until the ranks get there.
Result<int> find_free_port();

}  // namespace tutti::tools
