// Tests ranks that Slurm starts, on a real cluster of two nodes.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/slurm_cluster.h"

namespace tutti::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using Words = std::vector<std::string>;

const std::vector<std::string> sums = {"average: [1.5, -1.5]",
                                       "bits of all ranks: [15]",
                                       "max: [3, 0]",
                                       "min: [0, -3]",
                                       "rank 0 brings [1, 0, 0]",
                                       "rank 1 brings [1, 1, 10]",
                                       "rank 2 brings [1, 2, 20]",
                                       "rank 3 brings [1, 3, 30]",
                                       "sum of halves: [3, -3]",
                                       "sum, in place: [4, 6, 60]"};

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// All tests of a suite use the same cluster.
class SlurmTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = std::make_unique<SlurmCluster>(); }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    if (!cluster().problem().empty()) GTEST_SKIP() << cluster().problem();
  }

  static const SlurmCluster& cluster() { return *cluster_; }
  static Process run(Words command, const Process::Environment& environment = {}) {
    return Process(cluster().on(0, std::move(command)), environment);
  }
  // Waits until `condition` is true.
  static bool await(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + ample;
    while (!condition() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return condition();
  }
  // Waits until `count` processes on each node run the program.
  static bool await_processes(const std::string& program, std::size_t count) {
    return await([&] {
      return cluster().pids_of(program, 0).size() == count && cluster().pids_of(program, 1).size() == count;
    });
  }
  static bool all_end(const std::string& program) { return await_processes(program, 0); }

 private:
  static std::unique_ptr<SlurmCluster> cluster_;
};

std::unique_ptr<SlurmCluster> SlurmTest::cluster_;

void expect_sums(Process& process) {
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_EQ(sorted_lines(process.out()), sums) << process.report();
}

using SlurmSteps = SlurmTest;

TEST_F(SlurmSteps, AreOneWorldWithNothingSet) {
  Process process = run({"srun", "-n", "4", "./02_all_reduce"});
  expect_sums(process);
}

TEST_F(SlurmSteps, HaveRanksOnBothNodes) {
  Process process = run({"srun", "-n", "4", "./01_hello"});
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_THAT(process.out(),
              AllOf(ContainsRegex("rank 0 \\(host n01, pid [0-9]+\\), one of 4"),
                    ContainsRegex("rank 1 \\(host n01, "), ContainsRegex("rank 2 \\(host n02, "),
                    ContainsRegex("rank 3 \\(host n02, ")))
      << process.report();
}

class SlurmStepsWithMpi : public SlurmTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    SlurmTest::SetUp();
    if (IsSkipped()) return;
    Process trial = run({"srun", option(), "true"});
    if (trial.wait() != 0) GTEST_SKIP() << "this Slurm has no " << option() << ": " << trial.err();
  }
  static std::string option() { return "--mpi=" + GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(, SlurmStepsWithMpi, testing::Values("pmi2", "pmix"),
                         [](const auto& mpi) { return mpi.param; });

// Without TUTTI_TOKEN, ranks have a token only if they meet through Slurm's daemons.
TEST_P(SlurmStepsWithMpi, AreOneWorldWithATokenOfItsOwn) {
  Process process = run({"srun", option(), "-n", "4", "./02_all_reduce"});
  expect_sums(process);
  EXPECT_THAT(process.err(), Not(HasSubstr("without a token")));
}

TEST_P(SlurmStepsWithMpi, MeetAgainWhereverRank0Is) {
  const ScratchFolder folder;
  std::ofstream(folder / "hosts") << "n02\nn01\nn01\nn02\n";
  Process process = run({"srun", option(), "-n", "4", "--distribution=arbitrary", "tests/pmi_rank", "2"},
                        {{"SLURM_HOSTFILE", folder / "hosts"}});
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_EQ(process.out(), "sum 6 of 4\nsum 6 of 4\nstayed\n") << process.report();
}

// The nodes of a step need not be the first nodes of its job.
TEST_P(SlurmStepsWithMpi, NeedNotBeginOnTheFirstNode) {
  Process process = run({"salloc", "-N", "2", "-n", "4", "srun", option(), "--nodes=1", "--relative=1", "-n",
                         "2", "tests/pmi_rank", "1"});
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_THAT(process.out(), HasSubstr("sum 1 of 2\nstayed\n")) << process.report();
}

TEST_P(SlurmStepsWithMpi, EndInAnErrorIfARankDoesNotCome) {
  const std::string rank = "[ $SLURM_PROCID != 3 ] || exec sleep 1000; exec tests/pmi_rank 1";
  Process process = run({"srun", option(), "-n", "4", "--kill-on-bad-exit", "sh", "-c", rank},
                        {{"TUTTI_INIT_TIMEOUT", "6s"}});
  EXPECT_NE(process.wait(), 0) << process.report();
  const std::string error = GetParam() == "pmix" ? "rank 3 has not arrived" : "not all ranks have come";
  EXPECT_THAT(process.err(), HasSubstr(error)) << process.report();
}

TEST_P(SlurmStepsWithMpi, EndIfARankIsKilled) {
  const std::string rank = "[ $SLURM_PROCID != 3 ] || kill -9 $$; exec tests/pmi_rank 1";
  Process process = run({"srun", option(), "-n", "4", "--kill-on-bad-exit", "sh", "-c", rank});
  EXPECT_NE(process.wait(), 0) << process.report();
  EXPECT_THAT(process.out(), Not(HasSubstr("sum")));
}

TEST_F(SlurmSteps, MayRunAtTheSameTimeInOneJob) {
  const std::string step = "srun --exact -N 2 -n 2 ./01_hello";
  Process process = run({"salloc", "-N", "2", "-n", "4", "sh", "-c", step + " & " + step + "; wait"});
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_THAT(sorted_lines(process.out()), SizeIs(6)) << process.report();
  EXPECT_THAT(process.out(), Not(HasSubstr("one of 4")));
}

TEST_F(SlurmSteps, PassTheTokenOn) {
  Process process = run({"srun", "-n", "4", "./02_all_reduce"}, {{"TUTTI_TOKEN", "a secret of this test"}});
  expect_sums(process);
  EXPECT_THAT(process.err(), Not(HasSubstr("without a token")));
}

TEST_F(SlurmSteps, MayHaveRank0OnAnyNode) {
  const ScratchFolder folder;
  std::ofstream(folder / "hosts") << "n02\nn01\nn01\nn02\n";
  const Words srun = {"srun", "-n", "4", "--distribution=arbitrary", "./02_all_reduce"};
  const std::string file = folder / "hosts";
  Process lost = run(srun, {{"SLURM_HOSTFILE", file}});
  EXPECT_NE(lost.wait(), 0) << lost.report();
  EXPECT_THAT(lost.err(), HasSubstr("SLURM_PROCID and SLURM_STEP_NUM_TASKS are set but MASTER_ADDR is not"));
  Process process = run(srun, {{"SLURM_HOSTFILE", file}, {"MASTER_ADDR", "n02"}});
  expect_sums(process);
}

TEST_F(SlurmSteps, EndWhenARankIsKilled) {
  Process process = run({"srun", "-n", "4", "./tests/debug_rank", "busy"});
  ASSERT_TRUE(process.wait_for_output("stuck\nstuck\nstuck\nstuck\n")) << process.report();
  kill(cluster().pids_of("debug_rank", 1).at(0), SIGKILL);
  EXPECT_EQ(process.wait(), 128 + SIGKILL) << process.report();
  EXPECT_THAT(process.out(), ContainsRegex("peer_lost: rank 0 .*: rank [23] \\(host n02, pid [0-9]+\\)"));
  EXPECT_THAT(process.err(), ContainsRegex("srun: error: n02: task [23]: Killed"));
  EXPECT_TRUE(all_end("debug_rank"));
}

TEST_F(SlurmSteps, GoOnWithoutAKilledRank) {
  Process process = run({"srun", "-n", "4", "./06_survive", "--victim", "1", "--at", "50"});
  EXPECT_EQ(process.wait(), 128 + SIGKILL) << process.report();
  EXPECT_THAT(process.out(), HasSubstr("all 3 ranks hold bitwise equal weights")) << process.report();
}

TEST_F(SlurmSteps, OfAHeterogeneousJobAreOneWorld) {
  Process process = run({"salloc", "-w", "n01", "-n", "2", ":", "-w", "n02", "-n", "1", "srun",
                         "--het-group=0,1", "./01_hello"});
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_THAT(process.out(), AllOf(ContainsRegex("rank 1 \\(host n01, pid [0-9]+\\), one of 3"),
                                   HasSubstr("rank 2 (host n02, ")))
      << process.report();
}

using SlurmJobs = SlurmTest;

TEST_F(SlurmJobs, TuttiRunFindsTheHosts) {
  const ScratchFolder folder;
  const std::string script =
      "./tutti run ./02_all_reduce 2>" + (folder / "errors") + "; echo $? >" + (folder / "status");
  Process process =
      run({"sbatch", "-N", "2", "--ntasks-per-node=2", "--output", folder / "output", "--wrap", script});
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_TRUE(await([&] { return text_of(folder / "status").ends_with('\n'); }));
  EXPECT_EQ(text_of(folder / "status"), "0\n");
  EXPECT_EQ(sorted_lines(text_of(folder / "output")), sums);
  EXPECT_EQ(text_of(folder / "errors"),
            "tutti run: the hosts are those of SLURM_JOB_NODELIST, reached by srun\n");
}

TEST_F(SlurmJobs, TuttiRunMayRunOnAnotherHost) {
  Process process = run({"salloc", "-w", "n02", "-n", "2", "./tutti", "run", "./01_hello"});
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_THAT(process.out(), AllOf(HasSubstr("rank 0 (host n02, "), HasSubstr("rank 1 (host n02, ")));
}

// The shell runs on the first node, like the shell of `salloc` with
// `LaunchParameters=use_interactive_step`.
TEST_F(SlurmJobs, TuttiRunFindsTheHostsInAShellOfSalloc) {
  Process process = run({"salloc", "-N", "2", "-n", "4", "srun", "--interactive", "--preserve-env", "sh",
                         "-c", "./tutti run ./02_all_reduce"});
  expect_sums(process);
}

// With some of these variables, the launcher's srun would fail. With other variables, srun's output would be
// lost.
TEST_F(SlurmJobs, AnAgentHasItsWholeHost) {
  const std::string variables =
      "export SLURM_CPU_BIND=map_cpu:0 SLURM_EXACT=1 SLURM_EXCLUSIVE=1 SLURM_LABELIO=1 SLURM_MEM_PER_CPU=1 "
      "SLURM_MEM_PER_NODE=1 SLURM_MPI_TYPE=no_such SLURM_STDOUTMODE=/dev/null SRUN_CPUS_PER_TASK=9; ";
  Process process =
      run({"salloc", "-N", "2", "--ntasks-per-node=2", "sh", "-c",
           variables + "./tutti run -- sh -c 'echo $RANK has $(env -u OMP_NUM_THREADS nproc)'"});
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_THAT(process.out(), AllOf(HasSubstr("2 has 2\n"), HasSubstr("3 has 2\n"))) << process.report();
}

TEST_F(SlurmJobs, AnAgentHasAllGpusOfItsHost) {
  for (const char* const gpus : {"--gpus-per-task=1", "--gpus=4", "--gpus-per-node=2", "--gres=gpu:2"}) {
    Process process = run({"salloc", "-N", "2", "--ntasks-per-node=2", gpus, "sh", "-c",
                           "./tutti run -- sh -c 'echo $RANK: $CUDA_VISIBLE_DEVICES'"});
    EXPECT_EQ(process.wait(), 0) << process.report();
    EXPECT_THAT(process.out(), AllOf(HasSubstr("2: 0,1\n"), HasSubstr("3: 0,1\n"))) << process.report();
  }
}

TEST_F(SlurmJobs, ARefusedStepIsNotTriedAgain) {
  Process process =
      run({"salloc", "-N", "2", "-n", "4", "sh", "-c", "SLURM_JOB_NODELIST=n[02-03] ./tutti run -- true"});
  EXPECT_EQ(process.wait(), 1) << process.report();
  EXPECT_THAT(process.err(), AllOf(HasSubstr("host n03: srun has failed:\n"), HasSubstr("srun: error: ")));
}

TEST_F(SlurmJobs, TuttiRunNamesAKilledRank) {
  Process process =
      run({"salloc", "-N", "2", "--ntasks-per-node=2", "./tutti", "run", "./tests/debug_rank", "busy"});
  ASSERT_TRUE(process.wait_for_output("stuck\nstuck\nstuck\nstuck\n")) << process.report();
  kill(cluster().pids_of("debug_rank", 1).at(0), SIGKILL);
  EXPECT_EQ(process.wait(), 128 + SIGKILL) << process.report();
  EXPECT_THAT(process.err(),
              ContainsRegex("rank [23] \\(host n02, pid [0-9]+\\) was ended by signal 9 \\(Killed\\)"));
  EXPECT_TRUE(all_end("debug_rank"));
  EXPECT_TRUE(all_end("tutti"));
}

TEST_F(SlurmJobs, CancellingAJobEndsItsRanks) {
  Process batch = run({"sbatch", "--parsable", "-N", "2", "--ntasks-per-node=2", "--output=/dev/null",
                       "--wrap", "./tutti run ./tests/debug_rank busy"});
  ASSERT_EQ(batch.wait(), 0) << batch.report();
  ASSERT_TRUE(await_processes("debug_rank", 2));
  Process cancel = run({"scancel", sorted_lines(batch.out()).at(0)});
  EXPECT_EQ(cancel.wait(), 0) << cancel.report();
  EXPECT_TRUE(all_end("debug_rank"));
  EXPECT_TRUE(all_end("tutti"));
}

}  // namespace
}  // namespace tutti::test
