#pragma once

#include <deque>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/support/network_hosts.h"
#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {

// `SlurmCluster` is a Slurm cluster of two nodes, n01 and n02, with two processors and two GPUs
// each. Only Slurm believes that the GPUs exist. A node is a container without an image. Each node
// has its own network, host name, process ids, IPC, /proc, /run, /dev/shm, /etc/hosts and
// /etc/slurm. The nodes share all other files. Each node runs munged and slurmd, and n01 also runs
// slurmctld. There are no cgroups, so Slurm limits no memory. The destructor ends all processes of
// the nodes.
class SlurmCluster {
 public:
  // Throws std::runtime_error if Slurm is installed but does not start.
  SlurmCluster();

  // Returns the reason why there is no cluster, or an empty text if there is a cluster. A cluster
  // needs root, `ip`, two processors, and Debian's packages slurmctld, slurmd, slurm-client and
  // munge.
  const std::string& problem() const { return problem_; }
  // Returns the command that runs `command` on a node, 0 or 1, in the folder of tutti's programs.
  std::vector<std::string> on(int node, std::vector<std::string> command) const;
  // Returns the processes on a node that run the program `name`. The ids are those outside of the
  // node.
  std::vector<pid_t> pids_of(const std::string& name, int node) const;

 private:
  void write_files() const;
  void start_nodes();
  void await_nodes();

  std::string problem_;
  ScratchFolder folder_;
  NetworkHosts network_;
  std::deque<Process> nodes_;
};

}  // namespace tutti::test
