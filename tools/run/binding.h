#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sched.h>

#include <tutti/status.h>

namespace tutti::tools {

// `Binding` says to which processors of its host a rank is tied.
enum class Binding {
  none,  // to no processors
  core,  // to one core, with all of its hyperthreads
  numa,  // to all processors of one NUMA node
};

// `ProcessorSet` holds the processors that a rank is tied to. It is empty if the rank is not tied to any.
using ProcessorSet = std::optional<cpu_set_t>;

// Divides the processors that this process may use among the ranks of a host. Returns the set of
// each local rank. `core` gives each rank its own core, in the order of the cores, and returns an
// error if there are fewer cores than ranks. `numa` deals the nodes to the ranks in turn. Each
// processor counts as a core if the kernel describes no cores. All processors count as one node if
// the kernel describes no nodes.
Result<std::vector<ProcessorSet>> divide_processors(Binding binding, int local_ranks);

// Divides the processors in `usable` in the same way. `root` is the folder that holds /sys, for tests.
Result<std::vector<ProcessorSet>> divide_processors(Binding binding, int local_ranks, const cpu_set_t& usable,
                                                    const std::string& root);

}  // namespace tutti::tools
