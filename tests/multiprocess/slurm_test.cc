// Tests ranks that Slurm starts, on a real cluster of two nodes.

#include <algorithm>
#include <chrono>
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
using testing::IsEmpty;
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
  // Waits until no process on either node runs the program.
  static bool all_end(const std::string& program) {
    const auto end = std::chrono::steady_clock::now() + ample;
    while (std::chrono::steady_clock::now() < end) {
      if (cluster().pids_of(program, 0).empty() && cluster().pids_of(program, 1).empty()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

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

TEST_F(SlurmSteps, AreOneWorldUnderPmi2) {
  Process process = run({"srun", "--mpi=pmi2", "-n", "4", "./02_all_reduce"});
  expect_sums(process);
}

TEST_F(SlurmSteps, AreOneWorldUnderPmix) {
  Process trial = run({"srun", "--mpi=pmix", "true"});
  if (trial.wait() != 0) GTEST_SKIP() << "this Slurm has no PMIx: " << trial.err();
  Process process = run({"srun", "--mpi=pmix", "-n", "4", "./02_all_reduce"});
  expect_sums(process);
}

}  // namespace
}  // namespace tutti::test
