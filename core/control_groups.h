#pragma once

#include <string>
#include <vector>

namespace tutti {

// A `ControlGroup` is the folder of a control group under /sys/fs/cgroup.
struct ControlGroup {
  std::string folder;
  bool unified;  // v2, where all controllers share one folder
};

// Returns the groups whose limits on `controller` ("memory", "cpu") apply to this process. Each group comes
// before the groups that contain it. In a container, the kernel may report paths that exist only on the host.
// In that case the last group, which is the root of the mounted folder, is the container's own group. `root`
// is the folder that holds /proc and /sys. Only tests pass it.
std::vector<ControlGroup> control_groups(const std::string& controller, const std::string& root = "");

}  // namespace tutti
