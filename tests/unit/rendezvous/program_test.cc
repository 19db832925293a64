#include "rendezvous/meeting/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/meeting/arrivals.h"

namespace tutti::rendezvous {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Program, IsNamedByTheFileThatRuns) {
  EXPECT_EQ(program_of({"./build/a.out", "-v"}), "a.out");
  EXPECT_EQ(program_of({"train"}), "train");
  EXPECT_EQ(program_of({}), "");
}

TEST(Program, OfPythonIsTheScriptOrTheModule) {
  EXPECT_EQ(program_of({"/usr/bin/python3.11", "-u", "jobs/train.py", "--lr", "1"}), "train.py");
  EXPECT_EQ(program_of({"python", "-W", "ignore", "-X", "dev", "train.py"}), "train.py");
  EXPECT_EQ(program_of({"python3", "-m", "pkg.train", "eval.py"}), "pkg.train");
  EXPECT_EQ(program_of({"python3", "-c", "import pkg", "train.py"}), "");
  EXPECT_EQ(program_of({"python3"}), "");
}

TEST(Program, OfThisProcessIsKnown) {
  EXPECT_EQ(program_of(start_command()), "unit_rendezvous");
  EXPECT_EQ(decode_introduction(encode_introduction(describe_this_process()))->program, "unit_rendezvous");
}

Introduction started_as(int rank, const std::string& program) {
  Introduction self = describe_this_process();
  self.rank = rank;
  self.world_size = 2;
  self.host = "host" + std::to_string(rank);
  self.program = program;
  self.job.clear();
  return self;
}

std::string seen_by_rank_0(const Introduction& a, const Introduction& b) { return other_program(a, {a, b}); }

TEST(Program, OfAnotherJobIsNamedWithARemedy) {
  EXPECT_THAT(seen_by_rank_0(started_as(0, "train.py"), started_as(1, "eval.py")),
              AllOf(HasSubstr("rank 1"), HasSubstr("'eval.py'"), HasSubstr("rank 0"), HasSubstr("'train.py'"),
                    HasSubstr("MASTER_PORT"), HasSubstr("TUTTI_JOB_ID")));
}

TEST(Program, MayDifferWhereALauncherSaysThatTheJobIsOne) {
  Introduction a = started_as(0, "train.py"), b = started_as(1, "eval.py");
  a.job["SLURM_JOB_ID"] = b.job["SLURM_JOB_ID"] = "17";
  EXPECT_EQ(seen_by_rank_0(a, b), "");
  EXPECT_EQ(seen_by_rank_0(started_as(0, "train.py"), started_as(1, "train.py")), "");
  EXPECT_EQ(seen_by_rank_0(started_as(0, "train.py"), started_as(1, "")), "");
}

}  // namespace
}  // namespace tutti::rendezvous
