#pragma once

#include <string>
#include <vector>

namespace tutti {

// A `ControlGroup` is the folder of a control group under /sys/fs/cgroup.
struct ControlGroup {
  std::string folder;
  bool unified;  // v2, where one folder is for all controllers
};

// Returns the groups that limit this process by `controller` ("memory", "cpu"), each before the groups that
// contain it. In a container a group's path may be the host's, which is not visible there; then the
// container's own group is the last one. The system's files are looked up under `root`.
std::vector<ControlGroup> control_groups(const std::string& controller, const std::string& root = "");

}  // namespace tutti
