#pragma once

#include <string>
#include <vector>

#include <sched.h>

#include <tutti/status.h>

namespace tutti::tools {

// `Binding` says to which processors of its host a rank is tied.
enum class Binding {
  none,  // to no particular ones
  core,  // to one core, with all of its hyperthreads
  numa,  // to all processors of one NUMA node
};

// Divides the processors `usable` among the ranks of a host. Returns the processors of each local rank: with
// `core`, each rank gets a core of its own, in the order of the cores; with `numa`, the nodes are dealt to
// the ranks in turn. If the kernel tells nothing about cores or nodes, each processor counts as a core, and
// all of them together as a node. Fails with `invalid_argument` if there are fewer cores than ranks. `root`
// is the folder that holds /sys, for tests.
Result<std::vector<cpu_set_t>> divide_processors(Binding binding, int local_ranks, const cpu_set_t& usable,
                                                 const std::string& root = "");

}  // namespace tutti::tools
