#include "tools/run/spellings.h"

#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::tools {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

bool has_value(const std::string& option) {
  static const std::set<std::string> options = {
      "-n",       "-H",        "-N",     "-x",       "--hostfile",
      "--map-by", "--bind-to", "--wdir", "--prefix", "--output-filename",
      "--lease",  "--ssh-port"};
  return options.contains(option);
}

Translation translated(const Arguments& words) {
  Result<Translation> result = translate(words, has_value);
  if (!result.ok()) {
    ADD_FAILURE() << testing::PrintToString(words) << ": " << result.status().to_string();
    return {};
  }
  return *std::move(result);
}

Status problem_with(const Arguments& words) { return translate(words, has_value).status(); }

// Each case has options of another launcher, and then the matching options of `tutti run`. The
// other launcher's options have one dash here, but also work with two dashes.
TEST(Spellings, OfMpirunHydraAndHorovodrun) {
  const std::pair<Arguments, Arguments> cases[] = {
      {{"-n", "4"}, {"-n", "4"}},
      {{"-np", "4"}, {"-n", "4"}},
      {{"-c", "4"}, {"-n", "4"}},
      {{"-num-proc", "4"}, {"-n", "4"}},
      {{"-hostfile", "F"}, {"--hostfile", "F"}},
      {{"-machinefile", "F"}, {"--hostfile", "F"}},
      {{"-f", "F"}, {"--hostfile", "F"}},
      {{"-H", "a,b"}, {"-H", "a,b"}},
      {{"-host", "a,b"}, {"-H", "a,b"}},
      {{"-hosts", "a,b"}, {"-H", "a,b"}},
      {{"-N", "2"}, {"-N", "2"}},
      {{"-npernode", "2"}, {"-N", "2"}},
      {{"-ppn", "2"}, {"-N", "2"}},
      {{"-pernode"}, {"-N", "1"}},
      {{"-map-by", "node"}, {"--map-by", "node"}},
      {{"-map-by", "ppr:3:node"}, {"-N", "3"}},
      {{"-map-by", "ppr::node"}, {"--map-by", "ppr::node"}},
      {{"-map-by", "ppr:node"}, {"--map-by", "ppr:node"}},
      {{"-bynode"}, {"--map-by", "node"}},
      {{"-byslot"}, {"--map-by", "slot"}},
      {{"-bind-to", "core"}, {"--bind-to", "core"}},
      {{"-bind-to-core"}, {"--bind-to", "core"}},
      {{"-oversubscribe"}, {"--oversubscribe"}},
      {{"-nooversubscribe"}, {}},
      {{"-x", "A=-1"}, {"-x", "A=-1"}},
      {{"-wdir", "D"}, {"--wdir", "D"}},
      {{"-wd", "D"}, {"--wdir", "D"}},
      {{"-prefix", "D"}, {"--prefix", "D"}},
      {{"-tag-output"}, {"--tag-output"}},
      {{"-timestamp-output"}, {"--timestamp-output"}},
      {{"-prefix-output-with-timestamp"}, {"--timestamp-output"}},
      {{"-output-filename", "D"}, {"--output-filename", "D"}},
      {{"-merge-stderr-to-stdout"}, {"--merge-stderr-to-stdout"}},
      {{"-enable-recovery"}, {"--enable-recovery"}},
      {{"-allow-run-as-root"}, {}},
      {{"-q"}, {}},
      {{"-quiet"}, {}},
      {{"-report-bindings"}, {}},
      {{"-display-map"}, {}},
      {{"-display-allocation"}, {}},
      {{"-verbose"}, {}},
      {{"-gloo"}, {}},
      {{"-mpi"}, {}},
      {{"-p", "2222"}, {"--ssh-port", "2222"}},
      {{"-network-interface", "eth0"}, {}},
      {{"-genv", "A", "b=c"}, {"-x", "A=b=c"}},
      {{"-genvlist", "A,B"}, {"-x", "A", "-x", "B"}},
      {{"-genvall"}, {"-x", "*"}},
      {{"-mca", "plm_rsh_agent", "rsh -v"}, {"--agent", "rsh -v"}},
      {{"-gmca", "plm_rsh_args", "-p 2222"}, {"--ssh-args", "-p 2222"}},
  };
  for (auto [spelling, own] : cases) {
    for (const bool two_dashes : {false, true}) {
      if (two_dashes) spelling[0] = "-" + spelling[0];
      Arguments words = spelling;
      words.insert(words.end(), {"-n", "1", "prog", "-np", "5"});
      Arguments expected = own;
      expected.insert(expected.end(), {"-n", "1"});
      const Translation translation = translated(words);
      EXPECT_THAT(translation.options, ElementsAreArray(expected)) << spelling[0];
      EXPECT_THAT(translation.program, ElementsAre("prog", "-np", "5")) << spelling[0];
      EXPECT_THAT(translation.ignored, ElementsAre()) << spelling[0];
    }
  }
}

TEST(Spellings, ValuesAfterEqualsSigns) {
  EXPECT_THAT(translated({"--hostfile=F", "-map-by=ppr:2:node", "--lease=9s", "p"}).options,
              ElementsAre("--hostfile", "F", "-N", "2", "--lease=9s"));
  EXPECT_THAT(translated({"-xA=B", "-x=B", "--tag-output=1", "-pernode=1", "p"}).options,
              ElementsAre("-xA=B", "-x=B", "--tag-output=1", "-pernode=1"));
}

TEST(Spellings, OtherOptionsStay) {
  const Translation translation =
      translated({"--lease", "9s", "-n4", "-unknown", "--unknown", "p", "--lease"});
  EXPECT_THAT(translation.options, ElementsAre("--lease", "9s", "-n4", "-unknown", "--unknown"));
  EXPECT_THAT(translation.program, ElementsAre("p", "--lease"));
}

TEST(Spellings, ProgramBeginsAfterTwoDashes) {
  const Translation translation = translated({"-np", "2", "--", "-np", "--", ":"});
  EXPECT_THAT(translation.options, ElementsAre("-n", "2"));
  EXPECT_THAT(translation.program, ElementsAre("-np", "--", ":"));
}

TEST(Spellings, CommandsWithoutAProgram) {
  for (const Arguments& words : {Arguments{}, {"--"}, {"-np"}, {"-np", "2"}, {"--lease"}}) {
    EXPECT_THAT(translated(words).program, ElementsAre()) << testing::PrintToString(words);
  }
  EXPECT_THAT(translated({"-np"}).options, ElementsAre("-n"));
  EXPECT_THAT(translated({"-"}).program, ElementsAre("-"));
}

// These are unchanged command lines from tutorials.
TEST(Spellings, WholeCommandLines) {
  const Translation of_mpirun = translated({"--allow-run-as-root",
                                            "-np",
                                            "2",
                                            "-bind-to",
                                            "none",
                                            "-map-by",
                                            "slot",
                                            "-x",
                                            "NCCL_DEBUG=INFO",
                                            "-x",
                                            "LD_LIBRARY_PATH",
                                            "-x",
                                            "PATH",
                                            "-mca",
                                            "pml",
                                            "ob1",
                                            "-mca",
                                            "btl",
                                            "^openib",
                                            "python",
                                            "train.py",
                                            "--model=resnet101",
                                            "-n",
                                            "9"});
  EXPECT_THAT(of_mpirun.options, ElementsAre("-n", "2", "--bind-to", "none", "--map-by", "slot", "-x",
                                             "NCCL_DEBUG=INFO", "-x", "LD_LIBRARY_PATH", "-x", "PATH"));
  EXPECT_THAT(of_mpirun.program, ElementsAre("python", "train.py", "--model=resnet101", "-n", "9"));
  EXPECT_THAT(of_mpirun.ignored, ElementsAre("-mca pml ob1", "-mca btl ^openib"));

  const Translation of_horovodrun = translated({"--gloo", "-np", "4", "-p", "12345", "--network-interface",
                                                "eth0,ib0", "-H", "a:2,b:2", "python", "train.py"});
  EXPECT_THAT(of_horovodrun.options, ElementsAre("-n", "4", "--ssh-port", "12345", "-H", "a:2,b:2"));
  EXPECT_THAT(of_horovodrun.program, ElementsAre("python", "train.py"));
  EXPECT_EQ(of_horovodrun.socket_ifname, "=eth0,ib0");
}

TEST(Spellings, ParametersOfOpenMpi) {
  EXPECT_EQ(translated({"-mca", "btl_tcp_if_include", "eth0,10.0.0.0/8", "p"}).socket_ifname,
            "=eth0,10.0.0.0/8");
  EXPECT_EQ(translated({"--mca", "btl_tcp_if_exclude", "lo,docker0", "p"}).socket_ifname, "^=lo,docker0");
  EXPECT_FALSE(translated({"-mca", "orte_abort_on_non_zero_status", "0", "p"}).abort_on_non_zero);
  EXPECT_TRUE(translated({"-mca", "orte_abort_on_non_zero_status", "1", "p"}).abort_on_non_zero);
  EXPECT_THAT(translated({"-mca", "pml", "ob1", "--gmca", "btl", "^openib", "p"}).ignored,
              ElementsAre("-mca pml ob1", "--gmca btl ^openib"));
}

TEST(Spellings, Mistakes) {
  const std::pair<Arguments, std::string> mistakes[] = {
      {{"-mca"}, "-mca needs NAME VALUE"},
      {{"--gmca", "btl"}, "--gmca needs NAME VALUE"},
      {{"-genv", "A"}, "-genv needs NAME VALUE"},
      {{"-genvlist"}, "-genvlist needs NAME,NAME..."},
      {{"--network-interface"}, "--network-interface needs NAME,NAME..."},
      {{"-mca", "orte_abort_on_non_zero_status", "x", "p"},
       "-mca orte_abort_on_non_zero_status needs 0 or 1, not `x`"},
      {{"-n", "1", "p", ":", "-n", "2", "q"}, "several programs, separated by `:`, cannot be started"},
  };
  for (const auto& [words, message] : mistakes) {
    const Status problem = problem_with(words);
    EXPECT_EQ(problem.code(), Code::invalid_argument);
    EXPECT_THAT(problem.message(), testing::StartsWith(message));
  }
}

}  // namespace
}  // namespace tutti::tools
