// Tests successful jobs of `tutti run` on several hosts.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/multiprocess/job_over_hosts.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string tell_place = "echo $(hostname) $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE";

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class LauncherHosts : public JobOverHosts {
 protected:
  void SetUp() override { make_hosts(2); }
  const ScratchFolder folder_;
};

TEST_F(LauncherHosts, RanksRunOnTheHostsOfAHostfile) {
  std::ofstream(folder_ / "hosts") << "# two hosts\nalpha slots=1\nbeta:2\n";
  Process job = launch_shell({"--hostfile", folder_ / "hosts"}, tell_place);
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_THAT(sorted_lines(job.out()), ElementsAre("alpha 0/3 0/1", "beta 1/3 0/2", "beta 2/3 1/2"))
      << job.report();
  EXPECT_EQ(job.err(), "") << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHosts, RanksAreDealtInTurnByMapByNode) {
  Process job = launch_shell({"-H", "alpha:1,beta:3", "--map-by", "node"}, tell_place);
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_THAT(sorted_lines(job.out()),
              ElementsAre("alpha 0/4 0/1", "beta 1/4 0/3", "beta 2/4 1/3", "beta 3/4 2/3"))
      << job.report();
}

TEST_F(LauncherHosts, AHostWithoutANumberIsAskedForItsProcessors) {
  std::ofstream(folder_ / "hosts") << "alpha slots=1\nbeta max_slots=1\n";
  Process job = launch_shell({"--hostfile", folder_ / "hosts"}, tell_place);
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_THAT(sorted_lines(job.out()), ElementsAre("alpha 0/2 0/1", "beta 1/2 0/1")) << job.report();
}

TEST_F(LauncherHosts, RanksMeetOnTheHostOfRankZero) {
  Process job = launch({"-H", list(2), "--", built("02_all_reduce")});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHosts, TheLauncherMayRunOnAHostOfTheJob) {
  Process job = hosts().launch(0, {"-H", "beta:1,alpha:1", "--", built("02_all_reduce")});
  EXPECT_EQ(job.wait(), 0) << job.report();
  Process tells = hosts().launch(0, {"-H", "alpha:1,beta:1", "--", "sh", "-c", tell_place});
  EXPECT_EQ(tells.wait(), 0) << tells.report();
  EXPECT_THAT(sorted_lines(tells.out()), ElementsAre("alpha 0/2 0/1", "beta 1/2 0/1")) << tells.report();
  EXPECT_TRUE(ends_everywhere());
}

// The mean loss and the accuracy do not depend on where the ranks run. examples_training_test
// checks the values.
TEST_F(LauncherHosts, AModelIsTrained) {
  std::ofstream(folder_ / "hosts") << "alpha slots=2\nbeta slots=2\n";
  Process job = launch({"--hostfile", folder_ / "hosts", "--", built("05_train_digits")});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_THAT(job.out(), HasSubstr("final test accuracy 9")) << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHosts, VariablesArePassedOn) {
  Process job =
      launch({"-H", list(1), "-x", "COLOUR", "-x", "SHAPE=round", "-x", "NCCL_*", "--mpi-env", "--", "sh",
              "-c", "echo $OMPI_COMM_WORLD_RANK $COLOUR $SHAPE $NCCL_DEBUG $TUTTI_LOG $HIDDEN"},
             {{"COLOUR", "green"}, {"NCCL_DEBUG", "WARN"}, {"TUTTI_LOG", "error"}, {"HIDDEN", "no"}});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_THAT(sorted_lines(job.out()), ElementsAre("0 green round WARN error", "1 green round WARN error"))
      << job.report();
}

TEST_F(LauncherHosts, LogsArriveInOneTree) {
  Process job = launch_shell({"-H", list(1), "--output-filename", folder_ / "logs", "--tag-output"},
                             "echo $(hostname); echo trouble >&2");
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_THAT(sorted_lines(job.out()), ElementsAre("[1,0]<stdout>:alpha", "[1,1]<stdout>:beta"))
      << job.report();
  EXPECT_EQ(content(folder_ / "logs/1/rank.0/stdout"), "alpha\n");
  EXPECT_EQ(content(folder_ / "logs/1/rank.1/stdout"), "beta\n");
  EXPECT_EQ(content(folder_ / "logs/1/rank.1/stderr"), "trouble\n");
}

// The output is longer than a host's credit (the bytes that an agent may send before the launcher allows
// more), and arrives completely.
TEST_F(LauncherHosts, LongOutputArrivesWhole) {
  Process job = launch_shell({"-H", list(1)}, "seq 1 400000");
  EXPECT_EQ(job.wait(), 0) << job.err();
  const std::string out = job.out();
  EXPECT_EQ(std::ranges::count(out, '\n'), 800000);
}

TEST_F(LauncherHosts, RankZeroGetsTheInput) {
  std::ofstream(folder_ / "input") << "to rank zero\n";
  Process job(
      hosts().on(hosts().desk(), {"sh", "-c", "exec \"$0\" \"$@\" <" + (folder_ / "input"), built("tutti"),
                                  "run", "--ssh-args", "-F " + hosts().ssh_options()[1], "--ssh-port", "2222",
                                  "-H", "beta:1,alpha:1", "--", "sh", "-c", "echo $(hostname) $(cat)"}));
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_THAT(sorted_lines(job.out()), ElementsAre("alpha", "beta to rank zero")) << job.report();
}

TEST_F(LauncherHosts, TheFolderIsTheLaunchers) {
  Process job = launch_shell({"-H", list(1), "--wdir", folder_.path()}, "pwd; echo $PWD");
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_EQ(sorted_lines(job.out()), Words(4, folder_.path())) << job.report();
}

// The test uses a program like rsh, which may end as soon as the agent has called back.
TEST_F(LauncherHosts, AnotherProgramReachesTheHosts) {
  std::ofstream script(folder_ / "reach");
  script << "#!/bin/sh\nhost=$1; shift\nexec ssh -p 2222 -F " << hosts().ssh_options()[1]
         << " -n \"$host\" \"$@\" 2>/dev/null\n";
  script.close();
  std::filesystem::permissions(folder_ / "reach", std::filesystem::perms::owner_all);
  Process job = launch({"-H", list(1), "--agent", folder_ / "reach", "--", built("02_all_reduce")});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_TRUE(ends_everywhere());
}

// `ps` shows command lines to every user of a host. Each agent has its own secret of 64 hexadecimal
// digits.
TEST_F(LauncherHosts, NoSecretIsOnACommandLine) {
  const std::string token = "3c9a5ea1b0c7d2f46a8e9b1c2d3e4f50";
  Process job = launch({"-H", list(1), "--", "sh", "-c", "echo $TUTTI_TOKEN; exec sleep 1000"},
                       {{"TUTTI_TOKEN", token}});
  for (int host = 0; host <= hosts().desk(); ++host) {
    processes_with(host, host == hosts().desk() ? "tutti run" : "sleep 1000");
    for (const std::string& line : command_lines(host)) {
      EXPECT_THAT(line, AllOf(Not(HasSubstr(token)), Not(ContainsRegex("[0-9a-f]{64}"))));
    }
  }
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143) << job.report();
  EXPECT_EQ(job.out(), token + "\n" + token + "\n");
}

}  // namespace
}  // namespace tutti::test
