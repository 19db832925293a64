#include "rendezvous/launch/environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "rendezvous/launch/slurm.h"

namespace tutti {
namespace {

using Kind = StoreLocation::Kind;

Launch found(const Environment& environment, const LaunchArguments& arguments = {}) {
  return discover(arguments, environment).take();
}

// Returns the message of the error, or an empty text if there is no error.
std::string error(const Environment& environment, const LaunchArguments& arguments = {}) {
  const Result<Launch> launch = discover(arguments, environment);
  if (launch.ok()) return {};
  EXPECT_EQ(launch.status().code(), Code::invalid_argument);
  return launch.status().message();
}

void expect_launch(const Launch& launch, int rank, int world_size, const std::string& store) {
  EXPECT_EQ(launch.rank, rank);
  EXPECT_EQ(launch.world_size, world_size);
  EXPECT_EQ(to_string(launch.store), store);
}

#define EXPECT_SAYS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

const Environment plain = {
    {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29501"}};

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

TEST(Environment, Nothing) {
  const Launch launch = found({{"PATH", "/bin"}, {"RANK", ""}});
  expect_launch(launch, 0, 1, "none");
  EXPECT_SAYS(launch.source, "nothing");
}

TEST(Environment, Arguments) {
  expect_launch(found({}, {"tcp://h:1", 0, 2}), 0, 2, "tcp://h:1");
  expect_launch(found({}, {"", 0, 1}), 0, 1, "none");
  expect_launch(found({}, {"file:///x", 2, 3}), 2, 3, "file:///x");
  EXPECT_SAYS(error({}, {"", -1, 2}), "rank is -1 in the arguments");
  EXPECT_SAYS(error({}, {"", 0, 0}), "world size is 0 in the arguments");
  EXPECT_SAYS(error({}, {"tcp://h:1", 2, 2}), "rank 2 (from the arguments) is not below the world size 2");
  EXPECT_SAYS(error({}, {"", 0, 2}), "set TUTTI_INIT_METHOD, such as tcp://host:port");
  EXPECT_SAYS(error({}, {"tcp://h:1", 0, {}}), "the world size is not");
  EXPECT_SAYS(error({}, {"tcp://h:1", {}, 2}), "the rank is not");
}

TEST(Environment, Url) {
  const Launch launch = found(plain, {"tcp://[::1]:7?rank=0&world_size=3&timeout=9s", {}, {}});
  expect_launch(launch, 0, 3, "tcp://[::1]:7");
  EXPECT_FALSE(launch.store.served);
  EXPECT_EQ(launch.timeout, std::chrono::seconds(9));
  EXPECT_SAYS(launch.source, "the URL");
  // Settings that the URL leaves out come from the first source that has them.
  expect_launch(found(plain, {"tcp://h:1", {}, {}}), 1, 2, "tcp://h:1");
  expect_launch(found(plain, {"file:///x", {}, {}}), 1, 2, "file:///x");
  expect_launch(found(plain, {"env://", {}, {}}), 1, 2, "tcp://node0:29501");
  expect_launch(found({{"MASTER_ADDR", "m"}, {"MASTER_PORT", "5"}}, {"env://?rank=0&world_size=2", {}, {}}),
                0, 2, "tcp://m:5");
  EXPECT_SAYS(error({}, {"env://", {}, {}}), "set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  EXPECT_SAYS(error({}, {"tcp://h:1", {}, {}}), "cannot tell who this process is");
  EXPECT_SAYS(error({}, {"tcp://h", {}, {}}), "port is missing");
}

TEST(Environment, Tutti) {
  const Environment tutti = {{"TUTTI_RANK", "3"}, {"TUTTI_WORLD_SIZE", "4"}};
  const Launch served = found(with(with(plain, tutti), {{"TUTTI_STORE", "127.0.0.1:4000"}}));
  expect_launch(served, 3, 4, "tcp://127.0.0.1:4000");
  EXPECT_TRUE(served.store.served);
  expect_launch(found(with(tutti, {{"TUTTI_INIT_METHOD", "file:///j"}})), 3, 4, "file:///j");
  const Launch master = found(with(plain, tutti));
  expect_launch(master, 3, 4, "tcp://node0:29501");
  EXPECT_FALSE(master.store.served);
  const Launch local =
      found(with(with(plain, tutti), {{"TUTTI_LOCAL_RANK", "1"}, {"TUTTI_LOCAL_WORLD_SIZE", "2"}}));
  EXPECT_EQ(local.local_rank, 1);
  EXPECT_EQ(local.local_world_size, 2);
  EXPECT_TRUE(found(with(tutti, {{"TUTTI_STORE", "h:1"}, {"TUTTI_INIT_METHOD", "tcp://h:1"}})).store.served);
  EXPECT_SAYS(error(with(tutti, {{"TUTTI_STORE", "h"}})), "TUTTI_STORE is 'h'");
  EXPECT_SAYS(error(with(tutti, {{"TUTTI_INIT_METHOD", "udp://h"}})),
              "TUTTI_INIT_METHOD: init URL 'udp://h'");
  EXPECT_SAYS(
      error(tutti),
      "cannot tell where the ranks meet (the rank comes from TUTTI_RANK): set TUTTI_INIT_METHOD, such as "
      "tcp://host:port, or TUTTI_STORE to the host:port of a store that is served, or MASTER_ADDR and "
      "MASTER_PORT");
  EXPECT_SAYS(error(with(tutti, {{"MASTER_ADDR", "m"}})), "or MASTER_PORT (MASTER_ADDR is set)");
  EXPECT_SAYS(error({{"TUTTI_RANK", "0"}}), "TUTTI_WORLD_SIZE");
  EXPECT_SAYS(error({{"TUTTI_RANK", "x"}}), "TUTTI_RANK is 'x'");
  EXPECT_SAYS(error(with(tutti, {{"TUTTI_RANK", "4"}, {"TUTTI_STORE", "h:1"}})), "rank 4 (from TUTTI_RANK)");
}

TEST(Environment, ContradictionsNameBoth) {
  const Environment tutti = {{"TUTTI_RANK", "3"}, {"TUTTI_WORLD_SIZE", "4"}, {"TUTTI_STORE", "h:1"}};
  EXPECT_SAYS(error(tutti, {"", 2, 4}), "rank is 2 in the arguments but 3 in TUTTI_RANK");
  EXPECT_SAYS(error({}, {"tcp://h:1?rank=1&world_size=2", 0, 2}),
              "rank is 0 in the arguments but 1 in the URL tcp://h:1");
  EXPECT_SAYS(error(tutti, {"tcp://h:1?world_size=5", {}, {}}),
              "world size is 5 in the URL tcp://h:1?world_size=5 but 4 in TUTTI_WORLD_SIZE");
  const std::string places = error(tutti, {"tcp://g:1", {}, {}});
  EXPECT_SAYS(places, "tcp://g:1 according to the URL");
  EXPECT_SAYS(places, "tcp://h:1 according to TUTTI_STORE");
  EXPECT_SAYS(error(with(tutti, {{"TUTTI_INIT_METHOD", "file:///x"}})), "according to TUTTI_INIT_METHOD");
  // Values from different launchers are never compared with each other.
  EXPECT_EQ(error(with(plain, tutti)), "");
  EXPECT_EQ(error(with(plain, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "9"}})), "");
}

TEST(Environment, Plain) {
  const Launch launch = found(with(plain, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}));
  expect_launch(launch, 1, 2, "tcp://node0:29501");
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_world_size, 2);
  EXPECT_SAYS(launch.source, "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  expect_launch(found({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), 0, 1, "none");
}

TEST(Environment, WhereTorchrunListensIsNotOurs) {
  const Environment agent = {{"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  expect_launch(found(with(plain, agent)), 1, 2, "tcp://node0:29502");
  expect_launch(found(with(plain, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})), 1, 2, "tcp://node0:29501");
  expect_launch(found(with(with(plain, agent), {{"MASTER_PORT", "65535"}})), 1, 2, "tcp://node0:65534");
}

TEST(Environment, IncompleteSourcesAreListed) {
  Environment environment = plain;
  environment.erase("MASTER_PORT");
  EXPECT_SAYS(error(environment), "RANK, WORLD_SIZE and MASTER_ADDR are set but MASTER_PORT is not");
  environment = plain;
  environment.erase("RANK");
  EXPECT_SAYS(error(environment), "WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set but RANK is not");
  const std::string both = error({{"RANK", "0"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  EXPECT_SAYS(both, "RANK is set but WORLD_SIZE, MASTER_ADDR and MASTER_PORT are not");
  EXPECT_SAYS(both, "PMI_RANK and PMI_SIZE are set but MASTER_ADDR and MASTER_PORT are not");
}

TEST(Environment, BadValuesNameTheVariable) {
  for (const auto& [name, value] : Environment{{"RANK", "-1"},
                                               {"RANK", "1.5"},
                                               {"RANK", "0x1"},
                                               {"WORLD_SIZE", "0"},
                                               {"WORLD_SIZE", "many"},
                                               {"MASTER_PORT", "0"},
                                               {"MASTER_PORT", "x"},
                                               {"MASTER_PORT", "70000"}}) {
    EXPECT_SAYS(error(with(plain, {{name, value}})), name + " is '" + value + "'");
  }
  EXPECT_SAYS(error(with(plain, {{"RANK", "2"}})),
              "rank 2 (from RANK) is not below the world size 2 (from WORLD_SIZE)");
}

// `docker run --env-file` keeps quotes, and files from Windows have lines that end in \r\n.
TEST(Environment, WhatFilesOfVariablesAddIsNamed) {
  const Environment tutti = {
      {"TUTTI_RANK", "0"}, {"TUTTI_WORLD_SIZE", "2"}, {"TUTTI_INIT_METHOD", "tcp://a:1"}};
  const Environment served = {{"TUTTI_RANK", "0"}, {"TUTTI_WORLD_SIZE", "2"}, {"TUTTI_STORE", "a:1"}};
  const Environment slurm = {{"SLURM_STEP_ID", "0"},
                             {"SLURM_PROCID", "0"},
                             {"SLURM_NTASKS", "2"},
                             {"SLURM_STEP_NODELIST", "n[1-2]"},
                             {"SLURM_JOB_ID", "7"}};
  for (const Environment& good : {plain, tutti, served, slurm}) {
    EXPECT_EQ(error(good), "");
    for (const auto& [name, value] : good) {
      EXPECT_SAYS(error(with(good, {{name, value + "\r"}})),
                  name + " is '" + value + "\\r': it ends with a carriage return");
      EXPECT_SAYS(error(with(good, {{name, '"' + value + '"'}})),
                  name + " is '\"" + value + "\"': the quotes are a part of it");
    }
  }
}

TEST(Environment, OpenMpi) {
  const Environment ompi = {
      {"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}};
  const Launch launch = found(with(ompi, {{"MASTER_ADDR", "m"},
                                          {"MASTER_PORT", "5"},
                                          {"SLURM_STEP_ID", "0"},
                                          {"SLURM_PROCID", "7"},
                                          {"SLURM_NTASKS", "8"}}));
  expect_launch(launch, 2, 3, "tcp://m:5");
  EXPECT_EQ(launch.local_rank, 0);
  EXPECT_SAYS(error(ompi), "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE are set but MASTER_ADDR");
  expect_launch(found({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}), 0, 1, "none");
}

const Environment mpirun = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_RANK", "2"},
                            {"PMIX_NAMESPACE", "1382088705"}};

TEST(Environment, OpenMpiOnSeveralHosts) {
  const Launch launch = found(with(mpirun, {{"PMIX_PREFIX", "/opt/ompi"},
                                            {"OMPI_MCA_orte_precondition_transports", "ce77-9d8f"},
                                            {"SLURM_JOB_ID", "1"},
                                            {"SLURM_STEP_ID", "0"},
                                            {"SLURM_PROCID", "1"},
                                            {"SLURM_NTASKS", "2"}}));
  expect_launch(launch, 2, 4, "the launcher's PMIx");
  EXPECT_EQ(launch.source, "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, PMIX_NAMESPACE");
  EXPECT_EQ(launch.store.path, "/opt/ompi");
  EXPECT_EQ(launch.launcher_key.reveal(), "ce77-9d8f");
  // The user's settings take precedence, even if they are incomplete.
  const Launch user = found(with(mpirun, {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "5"}}));
  expect_launch(user, 2, 4, "tcp://m:5");
  EXPECT_TRUE(user.launcher_key.empty());
  EXPECT_SAYS(error(with(mpirun, {{"MASTER_ADDR", "m"}})), "MASTER_PORT");
  // These variables belong to another process, or to a launcher without PMIx.
  EXPECT_SAYS(error(with(mpirun, {{"PMIX_RANK", "0"}})), "MASTER_ADDR and MASTER_PORT are not");
  EXPECT_SAYS(error(with(mpirun, {{"PMIX_NAMESPACE", ""}})), "mpirun -x MASTER_ADDR=HOST_OF_RANK_0");
}

TEST(Environment, OpenMpiOnOneHost) {
  const Launch launch =
      found(with(mpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"XDG_RUNTIME_DIR", "/no/such/folder"}}));
  expect_launch(launch, 2, 4, "file:///tmp/tutti-" + std::to_string(getuid()) + "-1382088705");
  EXPECT_EQ(launch.local_world_size, 4);
}

TEST(Environment, Pmi) {
  expect_launch(found({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "m"}, {"MASTER_PORT", "5"}}), 1,
                2, "tcp://m:5");
  EXPECT_SAYS(error({{"PMI_RANK", "1"}}), "PMI_SIZE");
  const Environment mpiexec = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_FD", "7"}};
  expect_launch(found(mpiexec), 1, 2, "the launcher's PMI (descriptor 7)");
  EXPECT_EQ(found(mpiexec).store.descriptor, 7);
  EXPECT_EQ(found(mpiexec).source, "PMI_RANK, PMI_SIZE, PMI_FD");
  // The user's settings take precedence, even if they are incomplete.
  expect_launch(found(with(mpiexec, {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "5"}})), 1, 2, "tcp://m:5");
  EXPECT_SAYS(error(with(mpiexec, {{"MASTER_ADDR", "m"}})), "MASTER_PORT");
  expect_launch(
      found(with(mpiexec,
                 {{"TUTTI_RANK", "0"}, {"TUTTI_WORLD_SIZE", "3"}, {"TUTTI_INIT_METHOD", "file:///x"}})),
      0, 3, "file:///x");
  expect_launch(found({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"PMI_FD", "7"}}), 0, 1, "none");
  EXPECT_SAYS(error(with(mpiexec, {{"PMI_FD", "x"}})), "PMI_FD is 'x'");
}

const Environment step = {{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "1"},
                          {"SLURM_PROCID", "3"},  {"SLURM_NTASKS", "4"},
                          {"SLURM_LOCALID", "1"}, {"SLURM_STEP_NODELIST", "n[03-04],m1"}};

TEST(Environment, SlurmWithPmi) {
  const Environment srun =
      with(step, {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"PMI_FD", "10"}, {"PMI_JOBID", "77.1"}});
  expect_launch(found(srun), 3, 4, "the launcher's PMI (descriptor 10)");
  // These variables belong to an outer step.
  const Launch inner = found(with(srun, {{"PMI_JOBID", "77.0"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}));
  expect_launch(inner, 3, 4, "tcp://n03:" + std::to_string(slurm_port("77", "1")));
  // mpiexec runs its own processes as a step, with one process on each host. So the ranks of
  // mpiexec differ from the ranks of the step.
  Environment mpiexec = with(srun, {{"PMI_RANK", "6"}, {"PMI_SIZE", "8"}, {"PMI_FD", "7"}});
  mpiexec.erase("PMI_JOBID");
  expect_launch(found(mpiexec), 6, 8, "the launcher's PMI (descriptor 7)");
}

TEST(Environment, SlurmWithPmix) {
  const Environment srun = with(
      step,
      {{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "slurm.pmix.77.1"}, {"SLURM_JOB_NODELIST", "n[03-04],m1"}});
  const Launch launch = found(srun);
  expect_launch(launch, 3, 4, "the launcher's PMIx");
  EXPECT_FALSE(launch.store.fence_only);
  EXPECT_TRUE(found(with(srun, {{"SLURM_JOB_NODELIST", "n[01-04],m1"}})).store.fence_only);
  EXPECT_EQ(launch.local_rank, 1);
  expect_launch(found(with(srun, {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "5"}})), 3, 4, "tcp://m:5");
  // These variables belong to an outer step or to another rank.
  for (const Environment& other :
       {Environment{{"PMIX_NAMESPACE", "slurm.pmix.77.0"}}, {{"PMIX_RANK", "0"}}}) {
    expect_launch(found(with(srun, other)), 3, 4, "tcp://n03:" + std::to_string(slurm_port("77", "1")));
  }
}

TEST(Environment, Slurm) {
  const Environment batch = {{"SLURM_PROCID", "0"},
                             {"SLURM_NTASKS", "4"},
                             {"SLURM_JOB_ID", "77"},
                             {"SLURM_STEP_NODELIST", "n[03-04],m1"}};
  expect_launch(found(batch), 0, 1, "none");  // outside a step
  const Launch launch = found(step);
  expect_launch(launch, 3, 4, "tcp://n03:" + std::to_string(slurm_port("77", "1")));
  EXPECT_EQ(launch.local_rank, 1);
  expect_launch(found(with(step, {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "5"}})), 3, 4, "tcp://m:5");
  expect_launch(found(with(step, {{"SLURM_STEP_NUM_TASKS", "9"}, {"MASTER_PORT", "5"}})), 3, 9,
                "tcp://n03:5");
  // The shell of `salloc` is also a step, but the programs that it runs are not ranks of the job.
  expect_launch(found(with(step, {{"SLURM_STEP_ID", "4294967290"}})), 0, 1, "none");
  expect_launch(found(with(step, {{"SLURM_STEP_NODELIST", ""},
                                  {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"},
                                  {"MASTER_PORT", "5"}})),
                3, 4, "tcp://10.0.0.9:5");
}

TEST(Environment, SlurmWithRanksOnHostsThatTheUserChooses) {
  const Environment chosen = with(step, {{"SLURM_DISTRIBUTION", "arbitrary"}});
  EXPECT_SAYS(error(chosen), "MASTER_ADDR is not (MASTER_ADDR=HOST_OF_RANK_0 srun");
  expect_launch(found(with(chosen, {{"MASTER_ADDR", "m"}})), 3, 4,
                "tcp://m:" + std::to_string(slurm_port("77", "1")));
  expect_launch(found(with(chosen, {{"SLURM_STEP_NODELIST", "m1"}, {"MASTER_PORT", "5"}})), 3, 4,
                "tcp://m1:5");
  expect_launch(found(with(step, {{"SLURM_DISTRIBUTION", "cyclic"}, {"MASTER_PORT", "5"}})), 3, 4,
                "tcp://n03:5");
}

TEST(Environment, SlurmNodeLists) {
  using Hosts = std::vector<std::string>;
  EXPECT_EQ(expand_slurm_hosts("node7"), Hosts{"node7"});
  EXPECT_EQ(expand_slurm_hosts("a,b"), (Hosts{"a", "b"}));
  EXPECT_EQ(expand_slurm_hosts("n[008-011,15],m3"), (Hosts{"n008", "n009", "n010", "n011", "n15", "m3"}));
  EXPECT_EQ(expand_slurm_hosts("n[9-10]"), (Hosts{"n9", "n10"}));
  EXPECT_EQ(expand_slurm_hosts("rack[2-3]n[08,11]-ib,x"),
            (Hosts{"rack2n08-ib", "rack2n11-ib", "rack3n08-ib", "rack3n11-ib", "x"}));
  EXPECT_EQ(expand_slurm_hosts("n[0-65535]").size(), 65536u);
  for (const char* wrong : {"", "a,,b", "a,", "n[1", "n[]", "n[1,]", "n[b]", "n[2-1]", "n[-1]", "n[1-]",
                            "n[0-65536]", "n[0-65535],a", "n[0-999]m[0-999]", "n[0-9223372036854775807]"}) {
    EXPECT_EQ(expand_slurm_hosts(wrong), Hosts{}) << wrong;
  }
}

TEST(Environment, SlurmCounts) {
  using Counts = std::vector<int>;
  EXPECT_EQ(expand_slurm_counts("4"), Counts{4});
  EXPECT_EQ(expand_slurm_counts("2(x3),1"), (Counts{2, 2, 2, 1}));
  for (const char* wrong :
       {"", "2,", "x", "-1", "2(x)", "2(x0)", "2(x3", "2(3)", "(x3)", "2(x3)4", "2(x65537)"}) {
    EXPECT_EQ(expand_slurm_counts(wrong), Counts{}) << wrong;
  }
}

TEST(Environment, SlurmPorts) {
  EXPECT_NE(slurm_port("1", "0"), slurm_port("1", "1"));
  EXPECT_GE(slurm_port("123456", "0"), 10000);
  EXPECT_LT(slurm_port("123456", "0"), 30000);
}

TEST(Environment, KubernetesIndexedJob) {
  const Environment job = {{"JOB_COMPLETION_INDEX", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "job-0.svc"}};
  expect_launch(found(job), 1, 2, "tcp://job-0.svc:29500");
  expect_launch(found(with(job, {{"RANK", "0"}, {"MASTER_PORT", "5"}})), 0, 2,
                "tcp://job-0.svc:5");  // torchrun inside the job sets RANK and MASTER_PORT
  EXPECT_SAYS(error({{"JOB_COMPLETION_INDEX", "1"}}),
              "JOB_COMPLETION_INDEX is set but WORLD_SIZE and MASTER_ADDR are not");
}

TEST(Environment, NodeList) {
  const Environment nodes = {{"NODES_IPS", "10.0.0.1,10.0.0.2"}, {"NODE_PORT", "6000"}, {"NODES_NUM", "2"}};
  expect_launch(discover({}, nodes, {"127.0.0.1", "10.0.0.2"}).take(), 1, 2, "tcp://10.0.0.1:6000");
  expect_launch(found(with(nodes, {{"NODE_RANK", "0"}})), 0, 2, "tcp://10.0.0.1:6000");
  EXPECT_SAYS(error(nodes), "no address of this host is in NODES_IPS");
  EXPECT_SAYS(error(with(nodes, {{"NODES_NUM", "3"}})),
              "NODES_NUM is '3' but NODES_IPS '10.0.0.1,10.0.0.2' lists 2");
}

}  // namespace
}  // namespace tutti
