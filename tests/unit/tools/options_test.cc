#include "tools/bench/options.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/processors.h"
#include "tools/run/environment.h"
#include "tools/run/options.h"

namespace tutti::tools {
namespace {

using testing::ElementsAre;

RunOptions parse_run(const Arguments& arguments) {
  const auto parsed = parse_run_options(arguments);
  const RunOptions* options = std::get_if<RunOptions>(&parsed);
  if (options == nullptr) {
    ADD_FAILURE() << testing::PrintToString(arguments);
    return {};
  }
  return *options;
}

BenchOptions parse_bench(const Arguments& arguments) {
  const auto parsed = parse_bench_options(arguments);
  const BenchOptions* options = std::get_if<BenchOptions>(&parsed);
  if (options == nullptr) {
    ADD_FAILURE() << testing::PrintToString(arguments);
    return {};
  }
  return *options;
}

TEST(RunOptions, ProgramBeginsAtTheFirstPlainWord) {
  const RunOptions options =
      parse_run({"-n", "4", "-x", "A", "-x", "B=1 2", "--tag-output", "prog", "-n", "5", "--"});
  EXPECT_EQ(options.placement.ranks, 4);
  EXPECT_THAT(options.exports, ElementsAre("A", "B=1 2"));
  EXPECT_TRUE(options.output.tag);
  EXPECT_THAT(options.program, ElementsAre("prog", "-n", "5", "--"));
}

TEST(RunOptions, AutoIsTheNumberOfProcessors) {
  EXPECT_EQ(parse_run({"-n", "auto", "p"}).placement.ranks, usable_processors());
  EXPECT_EQ(parse_bench({"all_reduce", "-n", "auto"}).launch_ranks, usable_processors());
}

TEST(RunOptions, ProgramBeginsAfterTwoDashes) {
  EXPECT_THAT(parse_run({"-n4", "--", "-odd", "x"}).program, ElementsAre("-odd", "x"));
  EXPECT_THAT(parse_run({"--np", "2", "--", "--", "x"}).program, ElementsAre("--", "x"));
}

TEST(RunOptions, LogFolder) {
  const RunOptions both = parse_run({"-n", "1", "--output-filename", "a:b", "p"});
  EXPECT_EQ(both.output.directory, std::filesystem::absolute("a:b"));
  EXPECT_TRUE(both.output.to_terminal);
  const RunOptions files = parse_run({"-n", "1", "--output-filename=a:b:nocopy", "p"});
  EXPECT_EQ(files.output.directory, std::filesystem::absolute("a:b"));
  EXPECT_FALSE(files.output.to_terminal);
}

TEST(RunOptions, Grace) {
  EXPECT_EQ(parse_run({"-n", "1", "p"}).kill_grace, std::chrono::seconds(2));
  EXPECT_EQ(parse_run({"-n", "1", "--kill-grace", "1.5s", "p"}).kill_grace, std::chrono::milliseconds(1500));
}

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

TEST(RunEnvironment, FreePortsAreOutsideOfTheKernelsRange) {
  for (int i = 0; i < 20; ++i) {
    const int port = find_free_port().take();
    EXPECT_GE(port, 20000);
    EXPECT_LT(port, 32768);
  }
}

TEST(BenchOptions, Sizes) {
  const MeasuredInfo& all_reduce = *find_measured("all_reduce");
  EXPECT_THAT(parse_bench({"all_reduce", "--min-bytes", "4", "--max-bytes", "64"}).sizes(all_reduce),
              ElementsAre(4, 16, 64));
  EXPECT_THAT(parse_bench({"all_reduce", "--min-bytes", "1K", "--max-bytes", "5K", "--factor", "2"})
                  .sizes(all_reduce),
              ElementsAre(1024, 2048, 4096, 5120));
  EXPECT_THAT(parse_bench({"all_reduce", "--min-bytes", "8", "--max-bytes", "8"}).sizes(all_reduce),
              ElementsAre(8));
  EXPECT_THAT(parse_bench({"barrier"}).sizes(*find_measured("barrier")), ElementsAre(0));
}

TEST(BenchOptions, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(find_measured("all_reduce")->bus_factor(4), 1.5);
  for (const char* name : {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}) {
    EXPECT_DOUBLE_EQ(find_measured(name)->bus_factor(4), 0.75) << name;
  }
  for (const char* name : {"broadcast", "reduce", "sendrecv", "pingpong"}) {
    EXPECT_DOUBLE_EQ(find_measured(name)->bus_factor(4), 1) << name;
  }
}

TEST(BenchOptions, RanksThatWeStartDoNotStartOthers) {
  const Arguments arguments = {"all_reduce", "-n", "4"};
  EXPECT_EQ(parse_bench(arguments).launch_ranks, 4);
  EXPECT_EQ(parse_bench(arguments_of_rank(arguments)).launch_ranks, 0);
}

TEST(BenchOptions, Mistakes) {
  const Arguments mistakes[] = {{},
                                {"nothing"},
                                {"all_reduce", "--min-bytes", "0"},
                                {"all_reduce", "--min-bytes", "2K", "--max-bytes", "1K"},
                                {"all_reduce", "--max-bytes", "x"},
                                {"all_reduce", "--type", "float"},
                                {"all_reduce", "--op", "add"},
                                {"all_reduce", "--op", "bit_and"},
                                {"all_reduce", "--transport", "pigeon"},
                                {"all_reduce", "--algorithm", "magic"},
                                {"pingpong", "--algorithm", "ring"},
                                {"all_reduce", "-n", "0"}};
  for (const Arguments& arguments : mistakes) {
    const auto parsed = parse_bench_options(arguments);
    ASSERT_TRUE(std::holds_alternative<int>(parsed)) << testing::PrintToString(arguments);
    EXPECT_EQ(std::get<int>(parsed), 2) << testing::PrintToString(arguments);
  }
}

}  // namespace
}  // namespace tutti::tools
