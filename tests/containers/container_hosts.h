#pragma once

#include <deque>
#include <string>
#include <vector>

#include "tests/support/network_hosts.h"
#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {

// `ContainerHosts` are `NetworkHosts` with a container service on each host. The client `docker`
// talks to the service of one host, so `docker run --net=host` starts a container in that host's
// network. podman provides all services. They have the images of docker/Dockerfile: `tutti`,
// `tutti:sshd` and `tutti:build`. The destructor removes all containers.
class ContainerHosts {
 public:
  // Builds the images, unless podman still has them from an earlier run and no source has changed.
  // Throws std::runtime_error if docker/Dockerfile cannot be built.
  explicit ContainerHosts(int count);
  ~ContainerHosts();
  ContainerHosts(const ContainerHosts&) = delete;
  ContainerHosts& operator=(const ContainerHosts&) = delete;

  // Returns the reason why there are no containers, or an empty text if there are containers.
  const std::string& problem() const { return problem_; }
  std::string address(int host) const { return network_.address(host); }
  // Returns the variables that lead `docker` to the service of `host`.
  Process::Environment service(int host) const;
  // Ends and removes the containers of all hosts, and removes the networks that users made.
  void remove_containers() const;
  // Returns what the services of all hosts have printed.
  std::string service_reports() const;

 private:
  std::string prepare();
  void start_service(int host);
  std::string socket(int host) const { return folder_ / ("podman" + std::to_string(host)); }

  std::string problem_;
  ScratchFolder folder_;
  NetworkHosts network_;
  std::deque<Process> services_;
};

}  // namespace tutti::test
