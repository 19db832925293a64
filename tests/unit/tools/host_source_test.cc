#include "tools/run/host_source.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tutti::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Way = StartCommand::Way;

// These files exist in the tests.
const std::map<std::string, std::string> files = {{"hosts", "alpha slots=2\nbob@beta:3\n"},
                                                  {"/etc/mpi/hostfile", "w0 slots=4\nw1\nw2 max_slots=2\n"},
                                                  {"empty", ""}};

Result<std::string> read_file(const std::string& path) {
  const auto file = files.find(path);
  if (file == files.end()) return Status(Code::invalid_argument, "cannot read " + path);
  return file->second;
}

HostSource source(const RunOptions& options, const Environment& environment = {}) {
  return find_hosts(options, environment, read_file).take();
}

std::string error(const RunOptions& options, const Environment& environment = {}) {
  const auto found = find_hosts(options, environment, read_file);
  return found.ok() ? "no error" : found.status().message();
}

const Environment operator_of_open_mpi = {{"OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"},
                                          {"OMPI_MCA_orte_set_default_slots", "3"},
                                          {"OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"}};
const Environment slurm_job = {{"SLURM_JOB_ID", "7"},
                               {"SLURM_PROCID", "0"},
                               {"SLURM_JOB_NODELIST", "n[08-09],m"},
                               {"SLURM_TASKS_PER_NODE", "2(x2),1"}};

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

TEST(HostSource, ThisMachineIfNothingIsSet) {
  const HostSource found = source({}, {{"PATH", "/bin"}, {"SLURM_JOB_NODELIST", ""}});
  EXPECT_THAT(found.hosts, IsEmpty());
  EXPECT_EQ(found.remark, "");
}

TEST(HostSource, Options) {
  RunOptions options;
  options.hosts = {"gamma:4,delta", "gamma"};
  HostSource found = source(options);
  EXPECT_THAT(found.hosts, ElementsAre(ListedHost{"gamma", "", 5, {}}, ListedHost{"delta", "", 1, {}}));
  EXPECT_EQ(found.start_command.way, Way::ssh);
  EXPECT_EQ(found.remark, "");

  options.hosts.clear();
  options.hostfile = "hosts";
  options.ssh_port = 2222;
  options.ssh_args = " -i  key -J gate ";
  found = source(options);
  EXPECT_THAT(found.hosts, ElementsAre(ListedHost{"alpha", "", 2, {}}, ListedHost{"beta", "bob", 3, {}}));
  EXPECT_EQ(found.start_command.ssh_port, 2222);
  EXPECT_THAT(found.start_command.ssh_args, ElementsAre("-i", "key", "-J", "gate"));

  options.hosts = {"beta"};
  EXPECT_THAT(source(options).hosts, ElementsAre(ListedHost{"beta", "bob", 3, {}}));
}

TEST(HostSource, OptionsReplaceHostsOfVariables) {
  RunOptions options;
  options.hosts = {"gamma:4"};
  const HostSource found = source(options, with(slurm_job, operator_of_open_mpi));
  EXPECT_THAT(found.hosts, ElementsAre(ListedHost{"gamma", "", 4, {}}));
  EXPECT_EQ(found.start_command.way, Way::ssh);
}

TEST(HostSource, Agents) {
  RunOptions options;
  options.hosts = {"gamma:4"};
  options.agent = "/opt/rsh -v";
  HostSource found = source(options, {{"OMPI_MCA_plm_rsh_agent", "oarsh"}});
  EXPECT_EQ(found.start_command.way, Way::other);
  EXPECT_THAT(found.start_command.command, ElementsAre("/opt/rsh", "-v"));
  EXPECT_EQ(found.remark, "");

  options.agent = "";
  found = source(options, {{"OMPI_MCA_plm_rsh_agent", "oarsh -q : rsh"}});
  EXPECT_EQ(found.start_command.way, Way::other);
  EXPECT_THAT(found.start_command.command, ElementsAre("oarsh", "-q"));
  EXPECT_EQ(found.remark, "the hosts are reached by oarsh (OMPI_MCA_plm_rsh_agent)");
}

TEST(HostSource, TheAgentSshIsTheOrdinaryWay) {
  RunOptions options;
  options.hosts = {"gamma:4"};
  options.agent = "ssh -v";
  options.ssh_args = "-A";
  const HostSource found = source(options, {{"OMPI_MCA_plm_rsh_args", "-p 22"}});
  EXPECT_EQ(found.start_command.way, Way::ssh);
  EXPECT_THAT(found.start_command.ssh_args, ElementsAre("-v", "-A", "-p", "22"));
  EXPECT_EQ(found.remark, "the hosts are reached by ssh (OMPI_MCA_plm_rsh_args)");
}

TEST(HostSource, Slurm) {
  const HostSource found = source({}, slurm_job);
  EXPECT_THAT(found.hosts, ElementsAre(ListedHost{"n08", "", 2, {}}, ListedHost{"n09", "", 2, {}},
                                       ListedHost{"m", "", 1, {}}));
  EXPECT_EQ(found.start_command.way, Way::srun);
  EXPECT_EQ(found.remark, "the hosts are those of SLURM_JOB_NODELIST, reached by srun");
  EXPECT_THAT(source({}, with(slurm_job, {{"SLURM_TASKS_PER_NODE", ""}})).hosts[0],
              (ListedHost{"n08", "", {}, {}}));
  EXPECT_THAT(source({}, with(slurm_job, {{"SLURM_STEP_ID", "0"}})).hosts, IsEmpty());
  // The shell of `salloc` is also a step, on a node of the job.
  EXPECT_THAT(source({}, with(slurm_job, {{"SLURM_STEP_ID", "4294967290"}})).hosts, SizeIs(3));
  RunOptions options;
  options.agent = "ssh";
  EXPECT_EQ(source(options, slurm_job).start_command.way, Way::ssh);
}

TEST(HostSource, GpusOfASlurmJob) {
  using Gpus = std::map<std::string, int>;
  const auto gpus = [](const Environment& more) {
    return source({}, with(slurm_job, more)).start_command.gpus;
  };
  EXPECT_EQ(gpus({}), Gpus());
  EXPECT_EQ(gpus({{"SLURM_GPUS_PER_NODE", "4"}, {"SLURM_GPUS_ON_NODE", "4"}}), Gpus());
  EXPECT_EQ(gpus({{"SLURM_GPUS_PER_TASK", "1"}}), (Gpus{{"n08", 2}, {"n09", 2}, {"m", 1}}));
  EXPECT_EQ(gpus({{"SLURM_GPUS_PER_TASK", "a100:2"}}), (Gpus{{"n08", 4}, {"n09", 4}, {"m", 2}}));
  EXPECT_EQ(gpus({{"SLURM_GPUS_PER_TASK", "a100:1,v100:1"}}), (Gpus{{"n08", 4}, {"n09", 4}, {"m", 2}}));
  EXPECT_EQ(gpus({{"SLURM_GPUS", "3"}, {"SLURM_NTASKS_PER_GPU", "2"}}),
            (Gpus{{"n08", 1}, {"n09", 1}, {"m", 1}}));
  EXPECT_EQ(gpus({{"SLURM_GPUS", "12"}, {"SLURM_GPUS_ON_NODE", "4"}}),
            (Gpus{{"n08", 4}, {"n09", 4}, {"m", 4}}));
  EXPECT_EQ(gpus({{"SLURM_GPUS", "12"}}), (Gpus{{"n08", 4}, {"n09", 4}, {"m", 4}}));
  EXPECT_EQ(gpus({{"SLURM_GPUS", "2"}}), Gpus());
  EXPECT_EQ(gpus({{"SLURM_GPUS_PER_TASK", "x"}}), Gpus());
  EXPECT_EQ(gpus({{"SLURM_GPUS_PER_TASK", "1048576"}}).at("n08"), 1048576);
}

TEST(HostSource, AHeterogeneousJobOfSlurm) {
  const Environment job = {{"SLURM_HET_SIZE", "2"}, {"SLURM_JOB_NODELIST_HET_GROUP_0", "n1"}};
  EXPECT_THAT(error({}, job), HasSubstr("SLURM_HET_SIZE is set: tutti run cannot use"));
  EXPECT_THAT(source({}, with(job, {{"SLURM_STEP_ID", "0"}})).hosts, IsEmpty());
  RunOptions options;
  options.hosts = {"gamma:4"};
  EXPECT_THAT(source(options, job).hosts, SizeIs(1));
}

TEST(HostSource, WrongListsOfSlurm) {
  EXPECT_EQ(error({}, with(slurm_job, {{"SLURM_JOB_NODELIST", "n[1"}})),
            "SLURM_JOB_NODELIST is 'n[1'; expected a list of nodes");
  EXPECT_EQ(error({}, with(slurm_job, {{"SLURM_TASKS_PER_NODE", "2(x2)"}})),
            "SLURM_TASKS_PER_NODE is '2(x2)'; expected a number for each of the 3 nodes of "
            "SLURM_JOB_NODELIST");
}

// The MPIJob operator sets these variables, in its versions v2beta1 and v1.
TEST(HostSource, OpenMpi) {
  HostSource found = source({}, operator_of_open_mpi);
  EXPECT_THAT(found.hosts, ElementsAre(ListedHost{"w0", "", 4, {}}, ListedHost{"w1", "", 3, {}},
                                       ListedHost{"w2", "", 2, 2}));
  EXPECT_EQ(found.start_command.way, Way::ssh);
  EXPECT_THAT(found.start_command.ssh_args, ElementsAre("-o", "ConnectionAttempts=10"));
  EXPECT_EQ(found.remark,
            "the hosts are those of /etc/mpi/hostfile (OMPI_MCA_orte_default_hostfile), reached by ssh "
            "(OMPI_MCA_plm_rsh_args)");

  found = source({}, {{"OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"},
                      {"OMPI_MCA_plm_rsh_agent", "/etc/mpi/kubexec.sh"},
                      {"I_MPI_HYDRA_BOOTSTRAP_EXEC", "/other.sh"}});
  EXPECT_EQ(found.start_command.way, Way::other);
  EXPECT_THAT(found.start_command.command, ElementsAre("/etc/mpi/kubexec.sh"));
  EXPECT_EQ(found.hosts[1].slots, std::nullopt);
  EXPECT_EQ(
      source({}, with(operator_of_open_mpi, {{"OMPI_MCA_orte_set_default_slots", "cores"}})).hosts[1].slots,
      std::nullopt);
  EXPECT_THAT(source({}, {{"OMPI_MCA_orte_default_hostfile", "none"}}).hosts, IsEmpty());
}

TEST(HostSource, MpichAndIntelMpi) {
  HostSource found = source({}, {{"HYDRA_HOST_FILE", "hosts"}, {"HYDRA_LAUNCH_EXTRA_ARGS", "-q"}});
  EXPECT_EQ(found.hosts.size(), 2u);
  EXPECT_THAT(found.start_command.ssh_args, ElementsAre("-q"));
  EXPECT_EQ(found.remark,
            "the hosts are those of hosts (HYDRA_HOST_FILE), reached by ssh (HYDRA_LAUNCH_EXTRA_ARGS)");
  found = source({}, {{"HYDRA_HOST_FILE", "hosts"}, {"HYDRA_LAUNCHER_EXEC", "/etc/mpi/kubexec.sh"}});
  EXPECT_EQ(found.start_command.way, Way::other);

  found = source({}, {{"I_MPI_HYDRA_HOST_FILE", "/etc/mpi/hostfile"},
                      {"I_MPI_PERHOST", "1"},
                      {"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "-q -v"}});
  EXPECT_EQ(found.hosts[1].slots, 1);
  EXPECT_THAT(found.start_command.ssh_args, ElementsAre("-q", "-v"));
  found =
      source({}, {{"I_MPI_HYDRA_HOST_FILE", "hosts"}, {"I_MPI_HYDRA_BOOTSTRAP_EXEC", "/e/kubexec.sh -x"}});
  EXPECT_THAT(found.start_command.command, ElementsAre("/e/kubexec.sh", "-x"));
}

TEST(HostSource, ErrorsNameWhatIsWrong) {
  RunOptions options;
  options.hostfile = "missing";
  EXPECT_EQ(error(options), "--hostfile: cannot read missing");
  options.hostfile = "empty";
  EXPECT_EQ(error(options), "empty: no host in it");
  options.hostfile = "hosts";
  options.hosts = {"gamma"};
  EXPECT_EQ(error(options), "-H: gamma is not in the hostfile");
  EXPECT_EQ(error({}, {{"HYDRA_HOST_FILE", "missing"}}), "HYDRA_HOST_FILE: cannot read missing");
  EXPECT_THAT(error({}, {{"HYDRA_HOST_FILE", "\"hosts\""}}), HasSubstr("HYDRA_HOST_FILE is"));
}

TEST(HostSource, ReadsFiles) {
  const std::string path = testing::TempDir() + "tutti_host_source_" + std::to_string(getpid());
  const std::string text(10'000, 'x');
  std::ofstream(path) << text;
  EXPECT_EQ(read_text(path).take(), text);
  std::filesystem::remove(path);
  EXPECT_EQ(read_text(path).status().message(), "cannot read " + path + ": No such file or directory");
  EXPECT_THAT(read_text(testing::TempDir()).status().message(), HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace tutti::tools
