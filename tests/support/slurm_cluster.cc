#include "tests/support/slurm_cluster.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

namespace tutti::test {
namespace {

constexpr std::array node_names = {"n01", "n02"};

// config_overrides lets a node have two processors on a machine that has more. The other settings
// are those of a small cluster, with generous time limits for messages and a quick scheduler.
constexpr const char* slurm_conf = R"(
ClusterName=tutti
SlurmctldHost=n01
SlurmUser=root
SlurmdUser=root
StateSaveLocation=/run/slurmctld
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SchedulerParameters=bf_interval=1,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
GresTypes=gpu
MessageTimeout=100
TCPTimeout=60
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=n[01-02] CPUs=2 RealMemory=1000 Gres=gpu:2
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE
)";

// This script runs as the first process of a node. Its arguments are the shared folder and the name
// of the node. The script ends when slurmd ends, and the node ends with the script. The script also
// collects the processes that lose their parents.
constexpr const char* init = R"(
set -e
mount -t proc none /proc
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs none /dev/shm
mount --bind "$1/hosts" /etc/hosts
mount --bind "$1/etc" /etc/slurm
hostname "$2"
mkdir -m 755 /run/munge /run/slurmctld /run/slurmd
mknod /run/gpu0 c 1 3
mknod /run/gpu1 c 1 5
/usr/sbin/munged --foreground --key-file "$1/munge.key" --seed-file /run/munge.seed &
until test -S /run/munge/munge.socket.2; do sleep 0.02; done
if test "$2" = n01; then /usr/sbin/slurmctld -D & fi
/usr/sbin/slurmd -D
)";

std::string missing() {
  for (const char* const program : {"/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged",
                                    "/usr/bin/srun", "/usr/bin/nsenter", "/usr/bin/unshare"}) {
    if (access(program, X_OK) != 0) return std::string("no Slurm: there is no ") + program;
  }
  if (std::thread::hardware_concurrency() < 2) return "no Slurm: its nodes need two processors";
  return {};
}

void write_key(const std::string& path) {
  std::array<char, 64> key;
  std::ifstream("/dev/urandom").read(key.data(), key.size());
  std::ofstream(path).write(key.data(), key.size());
  chmod(path.c_str(), 0400);
}

}  // namespace

SlurmCluster::SlurmCluster() : network_(static_cast<int>(node_names.size())) {
  problem_ = network_.problem();
  if (problem_.empty()) problem_ = missing();
  if (!problem_.empty()) return;
  write_files();
  start_nodes();
  await_nodes();
}

std::vector<std::string> SlurmCluster::on(int node, std::vector<std::string> command) const {
  const std::string pid = std::to_string(nodes_.at(static_cast<std::size_t>(node)).pid());
  command.insert(command.begin(), {"nsenter", "--target", pid, "--mount", "--uts", "--ipc", "--net",
                                   "--pid=/proc/" + pid + "/ns/pid_for_children", "--wd=" TUTTI_BIN_DIR});
  return command;
}

std::vector<pid_t> SlurmCluster::pids_of(const std::string& name, int node) const {
  std::vector<pid_t> pids = network_.pids_in(node);
  std::erase_if(pids, [&name](pid_t pid) { return program_of(pid) != name; });
  return pids;
}

void SlurmCluster::write_files() const {
  std::ofstream hosts(folder_ / "hosts");
  hosts << "127.0.0.1 localhost\n";
  for (std::size_t node = 0; node < node_names.size(); ++node) {
    hosts << network_.address(static_cast<int>(node)) << ' ' << node_names[node] << '\n';
  }
  write_key(folder_ / "munge.key");
  std::filesystem::create_directory(folder_ / "etc");
  std::ofstream(folder_ / "etc/slurm.conf") << slurm_conf;
  // Slurm loads a plugin for cgroups even if it uses no cgroups. The plugin for version 2 needs systemd.
  std::ofstream(folder_ / "etc/cgroup.conf") << "CgroupPlugin=cgroup/v1\n";
  std::ofstream(folder_ / "etc/gres.conf") << "Name=gpu File=/run/gpu[0-1]\n";
  std::ofstream(folder_ / "etc/mpi.conf") << "PMIxCliTmpDirBase=/run\n";  // all nodes share /tmp
}

void SlurmCluster::start_nodes() {
  for (std::size_t node = 0; node < node_names.size(); ++node) {
    nodes_.emplace_back(network_.on(
        static_cast<int>(node), {"unshare", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child",
                                 "sh", "-c", init, "init", folder_.path(), node_names[node]}));
  }
}

void SlurmCluster::await_nodes() {
  const auto end = std::chrono::steady_clock::now() + ample;
  while (std::chrono::steady_clock::now() < end) {
    for (Process& node : nodes_) {
      if (node.wait(std::chrono::milliseconds(0))) throw std::runtime_error(node.report());
    }
    Process sinfo(on(0, {"sinfo", "--noheader", "--Node", "--format=%T"}));
    sinfo.wait();
    if (sinfo.out() == "idle\nidle\n") return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  throw std::runtime_error("Slurm does not start:\n" + nodes_.front().report() + nodes_.back().report());
}

}  // namespace tutti::test
