#include "tests/containers/container_hosts.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace tutti::test {
namespace {

// podman's images and settings stay in this folder of the build.
constexpr const char* kept = CONTAINERS_FOLDER;
constexpr int cannot = 77;  // build_images.sh exits with this status on machines that cannot make images

const Process::Environment settings = {{"CONTAINERS_CONF", std::string(kept) + "/containers.conf"},
                                       {"CONTAINERS_STORAGE_CONF", std::string(kept) + "/storage.conf"}};

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::string missing_program() {
  for (const std::string program : {"docker", "podman", "runc", "debootstrap", "nsenter"}) {
    if (Process({"sh", "-c", "command -v " + program}).wait() != 0) {
      return "no containers: there is no " + program;
    }
  }
  return {};
}

// podman leaves mounts behind. If this process has its own mount namespace, the mounts vanish when the
// process ends.
std::string enter_own_mounts() {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return std::string("no containers: no mount namespace can be made here: ") + std::strerror(errno);
  }
  return {};
}

}  // namespace

ContainerHosts::ContainerHosts(int count) : problem_(prepare()), network_(problem_.empty() ? count : 0) {
  if (problem_.empty()) problem_ = network_.problem();
  if (!problem_.empty()) return;
  for (int host = 0; host < count; ++host) start_service(host);
}

ContainerHosts::~ContainerHosts() {
  if (!services_.empty()) remove_containers();
}

void ContainerHosts::remove_containers() const {
  Process({"podman", "rm", "--all", "--force", "--time=0"}, settings).wait();
  Process({"podman", "network", "prune", "--force"}, settings).wait();
}

std::string ContainerHosts::service_reports() const {
  std::string reports;
  for (const Process& service : services_) reports += service.report() + '\n';
  return reports;
}

// Returns the variables that make `docker` use the host's service. BuildKit is off, since it would need
// Docker's own service.
Process::Environment ContainerHosts::service(int host) const {
  return {
      {"DOCKER_HOST", "unix://" + socket(host)}, {"DOCKER_CONFIG", folder_.path()}, {"DOCKER_BUILDKIT", "0"}};
}

// Returns the reason why containers cannot run here, or an empty text if the images are ready.
std::string ContainerHosts::prepare() {
  if (std::string missing = missing_program(); !missing.empty()) return missing;
  if (std::string refused = enter_own_mounts(); !refused.empty()) return refused;
  std::filesystem::create_directories(kept);
  Process images({std::string(TUTTI_SOURCE_DIR) + "/tests/containers/build_images.sh", kept});
  const auto status = images.wait(std::chrono::minutes(40));
  if (status == cannot) return last_line(images.err());
  if (status != 0) throw std::runtime_error(images.report());
  remove_containers();  // removes the containers of a run that was killed
  return {};
}

// Uses nsenter, since `ip netns exec` would hide the control groups, which podman needs.
void ContainerHosts::start_service(int host) {
  services_.emplace_back(
      std::vector<std::string>{"nsenter", "--net=" + network_.file(host), "podman", "--log-level=error",
                               "system", "service", "--time=0", "unix://" + socket(host)},
      settings);
  const auto end = std::chrono::steady_clock::now() + ample;
  while (Process({"docker", "version"}, service(host)).wait() != 0) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error(services_.back().report());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace tutti::test
