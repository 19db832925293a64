#pragma once

#include <string>
#include <vector>

namespace tutti {

// A `ControlGroup` is a control group's folder under /sys/fs/cgroup.
struct ControlGroup {
  std::string folder;
  bool unified;  // v2, where one folder is for all controllers
};

// The groups that limit this process by `controller` ("memory", "cpu"), each before its parents. In a
// container a group's path may be the host's, which cannot be seen there: then the container's group is the
// last one. `root`: where the system's files are found.
std::vector<ControlGroup> control_groups(const std::string& controller, const std::string& root = "");

}  // namespace tutti
