#include "tools/run/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::tools {
namespace {

using testing::ElementsAre;

TEST(RunEnvironment, RankVariablesReplaceThoseOfAnOuterLauncher) {
  Environment environment = {{"RANK", "7"}, {"TUTTI_RANK", "7"}, {"OTHER", "x"}};
  set_rank_variables(environment, {.rank = 2, .world_size = 4, .local_rank = 0, .local_world_size = 2});
  EXPECT_EQ(environment["RANK"], "2");
  EXPECT_EQ(environment["TUTTI_RANK"], "2");
  EXPECT_EQ(environment["TUTTI_WORLD_SIZE"], "4");
  EXPECT_EQ(environment["LOCAL_RANK"], "0");
  EXPECT_EQ(environment["LOCAL_WORLD_SIZE"], "2");
  EXPECT_EQ(environment["OTHER"], "x");
}

TEST(RunEnvironment, AnOuterTorchrunListensElsewhere) {
  Environment environment = {{"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  set_job_variables(environment, {"job", "127.0.0.1:29501", "127.0.0.1", 29500});
  EXPECT_FALSE(environment.contains("TORCHELASTIC_USE_AGENT_STORE"));
  EXPECT_EQ(environment["MASTER_PORT"], "29500");
}

TEST(RunEnvironment, ProcessorsAreShared) {
  Environment environment;
  share_processors(environment, 1, {});
  EXPECT_FALSE(environment.contains("OMP_NUM_THREADS"));
  share_processors(environment, 100'000, {});
  EXPECT_EQ(environment["OMP_NUM_THREADS"], "1");
  environment["OMP_NUM_THREADS"] = "3";
  share_processors(environment, 100'000, {});
  EXPECT_EQ(environment["OMP_NUM_THREADS"], "3");
}

TEST(RunEnvironment, Exports) {
  Environment environment = {{"KEPT", "k"}};
  EXPECT_THAT(apply_exports(environment, {"KEPT", "SET=a=b", "EMPTY=", "MISSING"}), ElementsAre("MISSING"));
  EXPECT_EQ(environment, (Environment{{"EMPTY", ""}, {"KEPT", "k"}, {"SET", "a=b"}}));
}

TEST(RunEnvironment, ExportsByPattern) {
  Environment environment = {{"NCCL_A", "1"}, {"NCCL_B", "2"}, {"NCC", "3"}};
  const Environment before = environment;
  EXPECT_THAT(apply_exports(environment, {"NCCL_*", "*", "GLOO_*"}), ElementsAre("GLOO_*"));
  EXPECT_EQ(environment, before);
}

TEST(RunEnvironment, OtherHostsGetTuttisVariablesAndTheExports) {
  Environment environment = {{"TUTTI_TLS", "1"}, {"TUTTI_BIND_ADDRESS", "10.0.0.1"},
                             {"TUTTI_", "x"},    {"TUTTI_ADVERTISE_ADDRESS", "10.0.0.2"},
                             {"NCCL_A", "1"},    {"NCCL_B", "2"},
                             {"PATH", "/bin"},   {"HOME", "/root"}};
  EXPECT_EQ(passed_on(environment, {}), (Environment{{"TUTTI_", "x"}, {"TUTTI_TLS", "1"}}));
  const std::vector<std::string> exports = {"NCCL_*", "PATH", "SET=a=b", "MISSING"};
  apply_exports(environment, exports);
  EXPECT_EQ(passed_on(environment, exports), (Environment{{"NCCL_A", "1"},
                                                          {"NCCL_B", "2"},
                                                          {"PATH", "/bin"},
                                                          {"SET", "a=b"},
                                                          {"TUTTI_", "x"},
                                                          {"TUTTI_TLS", "1"}}));
}

TEST(RunEnvironment, PatternsLeaveOutWhatConcernsTheLaunchersHost) {
  const Environment environment = {
      {"A", "1"},     {"DISPLAY", ":0"},   {"HOSTNAME", "h"},  {"PWD", "/"},
      {"SHLVL", "1"}, {"SSH_CLIENT", "c"}, {"SSH_TTY", "pts"}, {"TUTTI_BIND_ADDRESS", "10.0.0.1"}};
  EXPECT_EQ(passed_on(environment, {"*"}), (Environment{{"A", "1"}}));
  EXPECT_EQ(passed_on(environment, {"DISPLAY", "TUTTI_BIND_ADDRESS"}),
            (Environment{{"DISPLAY", ":0"}, {"TUTTI_BIND_ADDRESS", "10.0.0.1"}}));
}

TEST(RunEnvironment, VariablesOfOpenMpi) {
  Environment environment;
  set_mpi_variables(environment, {.rank = 2, .world_size = 5, .local_rank = 1, .local_world_size = 3});
  EXPECT_EQ(environment, (Environment{{"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                                      {"OMPI_COMM_WORLD_NODE_RANK", "1"},
                                      {"OMPI_COMM_WORLD_RANK", "2"},
                                      {"OMPI_COMM_WORLD_SIZE", "5"},
                                      {"OMPI_UNIVERSE_SIZE", "5"}}));
}

TEST(RunEnvironment, FreePortsAreOutsideOfTheKernelsRange) {
  for (int i = 0; i < 20; ++i) {
    const int port = find_free_port().take();
    EXPECT_GE(port, 20000);
    EXPECT_LT(port, 32768);
  }
}

}  // namespace
}  // namespace tutti::tools
