#include "tools/bench/options.h"

#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/processors.h"
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
  EXPECT_THAT(parse_run({"--kill-grace=1s", "-n", "2", "x"}).program, ElementsAre("x"));
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

TEST(RunOptions, HostsAndPlacement) {
  const RunOptions options = parse_run({"--hostfile", "hosts", "-H", "a:2,b", "-H", "[fd00::7]", "-N", "2",
                                        "--map-by", "node", "--oversubscribe", "--bind-to", "numa", "p"});
  EXPECT_EQ(options.hostfile, "hosts");
  EXPECT_THAT(options.hosts, ElementsAre("a:2,b", "[fd00::7]"));
  EXPECT_EQ(options.placement.ranks, std::nullopt);
  EXPECT_EQ(options.placement.per_host, 2);
  EXPECT_EQ(options.placement.map_by, MapBy::node);
  EXPECT_TRUE(options.placement.oversubscribe);
  EXPECT_EQ(options.binding, Binding::numa);
}

TEST(RunOptions, WithoutOptions) {
  const RunOptions options = parse_run({"p"});
  EXPECT_EQ(options.hostfile, "");
  EXPECT_THAT(options.hosts, ElementsAre());
  EXPECT_EQ(options.placement.per_host, std::nullopt);
  EXPECT_EQ(options.placement.map_by, MapBy::slot);
  EXPECT_FALSE(options.placement.oversubscribe);
  EXPECT_EQ(options.binding, Binding::none);
  EXPECT_EQ(options.ssh_port, 0);
  EXPECT_EQ(options.lease, std::chrono::seconds(6));
  EXPECT_EQ(options.start_timeout, std::chrono::seconds(60));
  EXPECT_EQ(options.socket_ifname, "");
  EXPECT_TRUE(options.abort_on_non_zero);
  EXPECT_FALSE(options.enable_recovery);
  EXPECT_FALSE(options.dry_run);
  EXPECT_FALSE(options.mpi_env);
}

TEST(RunOptions, WayToTheHosts) {
  const RunOptions options = parse_run(
      {"--ssh-port", "2222", "--ssh-args", "-i key -J gate", "--agent", "rsh -v", "--prefix", "/opt/t",
       "--call-back", "[::1]", "--start-timeout", "5m", "--lease=20s", "--dry-run", "--mpi-env", "p"});
  EXPECT_EQ(options.ssh_port, 2222);
  EXPECT_EQ(options.ssh_args, "-i key -J gate");
  EXPECT_EQ(options.agent, "rsh -v");
  EXPECT_EQ(options.prefix, "/opt/t");
  EXPECT_EQ(options.call_back, "[::1]");
  EXPECT_EQ(options.start_timeout, std::chrono::minutes(5));
  EXPECT_EQ(options.lease, std::chrono::seconds(20));
  EXPECT_TRUE(options.dry_run);
  EXPECT_TRUE(options.mpi_env);
}

// This is a command line from an example of the MPIJob operator, with more parameters.
TEST(RunOptions, AnMpirunCommand) {
  const RunOptions options = parse_run({"--allow-run-as-root",
                                        "-np",
                                        "2",
                                        "-bind-to",
                                        "none",
                                        "-map-by",
                                        "slot",
                                        "-hostfile",
                                        "/etc/mpi/hostfile",
                                        "-x",
                                        "LD_LIBRARY_PATH",
                                        "-x",
                                        "NCCL_*",
                                        "-mca",
                                        "pml",
                                        "ob1",
                                        "-mca",
                                        "btl_tcp_if_exclude",
                                        "lo,docker0",
                                        "-mca",
                                        "orte_abort_on_non_zero_status",
                                        "0",
                                        "-tag-output",
                                        "-wd",
                                        "/job",
                                        "python",
                                        "train.py",
                                        "-x"});
  EXPECT_EQ(options.placement.ranks, 2);
  EXPECT_EQ(options.placement.map_by, MapBy::slot);
  EXPECT_EQ(options.hostfile, "/etc/mpi/hostfile");
  EXPECT_THAT(options.exports, ElementsAre("LD_LIBRARY_PATH", "NCCL_*"));
  EXPECT_EQ(options.socket_ifname, "^=lo,docker0");
  EXPECT_FALSE(options.abort_on_non_zero);
  EXPECT_TRUE(options.output.tag);
  EXPECT_EQ(options.folder, "/job");
  EXPECT_THAT(options.program, ElementsAre("python", "train.py", "-x"));
}

TEST(RunOptions, OneWarningListsAllIgnoredParameters) {
  testing::internal::CaptureStderr();
  parse_run({"-n", "1", "-mca", "pml", "ob1", "--mca", "btl", "^openib", "p"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "tutti run: ignored, since only Open MPI knows their meaning: -mca pml ob1, --mca btl ^openib\n");
}

TEST(RunOptions, Mistakes) {
  const std::pair<Arguments, std::string> mistakes[] = {
      {{"--map-by", "socket"}, "--map-by needs slot, node or ppr:N:node, not `socket`"},
      {{"--map-by", "ppr:2:socket"}, "--map-by needs slot, node or ppr:N:node, not `ppr:2:socket`"},
      {{"-map-by", "ppr:x:node"}, "-N"},
      {{"-bind-to", "hwthread"}, "--bind-to needs none, core or numa, not `hwthread`"},
      {{"--lease", "0"}, "--lease needs a duration like 500ms or 10s, of at least 100ms, not `0`"},
      {{"--start-timeout", "soon"}, "--start-timeout needs a duration"},
      {{"--kill-grace", "-1s"}, "--kill-grace needs a duration like 500ms or 10s, not `-1s`"},
      {{"--ssh-port", "65536"}, "--ssh-port"},
      {{"-N", "0"}, "-N"},
      {{"--prefix", "opt"}, "--prefix needs an absolute path, not `opt`"},
      {{"-x", "*A"}, "-x needs VAR, VAR* or VAR=VALUE, not `*A`"},
      {{"-x", "A*=1"}, "-x needs VAR, VAR* or VAR=VALUE, not `A*=1`"},
      {{"-x", ""}, "-x needs VAR, VAR* or VAR=VALUE, not ``"},
      {{"-mca", "btl"}, "-mca needs NAME VALUE"},
      {{"-hostfile"}, "--hostfile"},
  };
  for (auto [arguments, message] : mistakes) {
    if (arguments.size() > 1 && arguments[1] != "btl") arguments.push_back("p");
    testing::internal::CaptureStderr();
    const auto parsed = parse_run_options(arguments);
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(std::holds_alternative<int>(parsed)) << message;
    EXPECT_EQ(std::get<int>(parsed), 2) << message;
    EXPECT_THAT(said, testing::StartsWith("tutti run: " + message));
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
