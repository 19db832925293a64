// Tests that ranks meet under Open MPI's mpirun without settings. They meet in a file if they are
// all on one host, and otherwise through PMIx, the interface of mpirun. mpi_hosts_test.cc tests
// meetings on two hosts.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/multiprocess/launched_ranks.h"
#include "tests/support/process.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Without this variable, the ranks do not know that they are all on one host, so they meet through
// PMIx.
const std::string on_some_host = "env -u OMPI_COMM_WORLD_LOCAL_SIZE ";
const Words by_pmix = {"env", "-u", "OMPI_COMM_WORLD_LOCAL_SIZE"};

class Mpirun : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_installed("mpirun.openmpi"))
      GTEST_SKIP() << "mpirun.openmpi (Debian's package openmpi-bin) is not installed";
  }
};

// Returns the command that starts `ranks` processes. There may be more processes than processors on
// this host.
Words mpirun(int ranks) { return {"mpirun.openmpi", "--oversubscribe", "-n", std::to_string(ranks)}; }

Process::Environment with(Process::Environment environment) {
  environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
  environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  return environment;
}

void expect_success(const Words& command, const std::string& out,
                    const Process::Environment& environment = {}) {
  Process job(command, with(environment));
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_EQ(job.out(), out) << job.report();
  EXPECT_EQ(job.err(), "");
}

TEST_F(Mpirun, RanksOfOneHostMeetInAFile) {
  for (const int ranks : {1, 2, 4, 7})
    expect_success(mpirun(ranks) + Words{pmi_rank, "2"}, sum_on(ranks) + sum_on(ranks) + "stayed\n");
}

TEST_F(Mpirun, RanksMeetThroughPmix) {
  for (const int ranks : {1, 2, 3, 4, 7, 8, 16})
    expect_success(mpirun(ranks) + by_pmix + Words{pmi_rank, "1"}, sum_on(ranks) + "stayed\n");
}

// mpirun would kill rank 0 if the other ranks ended without a goodbye.
TEST_F(Mpirun, RanksMeetAgainAndLeaveOneAfterTheOther) {
  expect_success(mpirun(3) + by_pmix + Words{pmi_rank, "3"}, sum_on(3) + sum_on(3) + sum_on(3) + "stayed\n");
}

// Encryption needs a token, and only the session has one in this test.
TEST_F(Mpirun, TheSessionHoldsAToken) {
  expect_success(mpirun(3) + by_pmix + Words{pmi_rank, "1"}, sum_on(3) + "stayed\n",
                 {{"TUTTI_TLS", "1"}, {"TUTTI_TRANSPORTS", "tcp"}});
}

// A process that only reads the session must not be able to join.
TEST_F(Mpirun, ARankNeedsTheKeyOfTheLauncherToo) {
  const Errors errors;
  const std::string command =
      "[ $PMIX_RANK = 0 ] || export OMPI_MCA_orte_precondition_transports=1-2; exec " + on_some_host +
      pmi_rank + " 1";
  Process job(mpirun(2) + errors.rank(command), with({{"TUTTI_INIT_TIMEOUT", "20s"}}));
  EXPECT_NE(job.wait(), 0) << job.report();
  EXPECT_THAT(errors.text(), HasSubstr("rank 1")) << job.report();
  EXPECT_THAT(errors.text(), HasSubstr("token")) << job.report();
}

TEST_F(Mpirun, ARankThatDoesNotComeIsNamed) {
  const Errors errors;
  const Words absent = {":", "-n", "1", "sleep", "1000"};
  Process job(mpirun(2) + errors.rank(on_some_host + pmi_rank + " 1") + absent,
              with({{"TUTTI_INIT_TIMEOUT", "3s"}}));
  EXPECT_NE(job.wait(), 0) << job.report();
  EXPECT_THAT(errors.text(), HasSubstr("rank 2 has not arrived"));
  EXPECT_THAT(job.out(), Not(HasSubstr("sum")));
}

TEST_F(Mpirun, ARankZeroThatDoesNotComeEndsInAnError) {
  const Errors errors;
  const Words ranks = Words{":", "-n", "2"} + errors.rank(on_some_host + pmi_rank + " 1");
  Process job(mpirun(1) + Words{"sleep", "1000"} + ranks, with({{"TUTTI_INIT_TIMEOUT", "3s"}}));
  EXPECT_NE(job.wait(), 0) << job.report();
  EXPECT_THAT(errors.text(), HasSubstr("no session at the launcher's PMIx within the time given"));
}

TEST_F(Mpirun, ARankThatIsKilledEndsTheJob) {
  const Words killed = {":", "-n", "1", "sh", "-c", "kill -9 $$"};
  Process job(mpirun(2) + by_pmix + Words{pmi_rank, "1"} + killed, with({}));
  EXPECT_NE(job.wait(), 0) << job.report();
  EXPECT_THAT(job.out(), Not(HasSubstr("sum")));
}

TEST_F(Mpirun, AnInterruptEndsTheWait) {
  const Errors errors;
  const Words absent = {"sleep", "1000", ":", "-n", "2"};
  Process job(mpirun(1) + absent + errors.rank(on_some_host + pmi_rank + " 1 interrupted"), with({}));
  EXPECT_NE(job.wait(), 0) << job.report();
  EXPECT_THAT(errors.text(), HasSubstr("interrupted"));
}

// mpirun is stopped, so PMIx does not answer. The first call of a PMIx function would never return. mpirun
// does not survive this test, so the test does not wait for mpirun to end.
TEST_F(Mpirun, ALauncherThatDoesNotAnswerEndsInAnError) {
  const Errors errors;
  const std::string rank = "OMPI_COMM_WORLD_SIZE=2 " + on_some_host + pmi_rank + " 1";
  Process job(mpirun(1) + errors.rank("kill -STOP $PPID; (" + rank + "; echo status $? >&2)"),
              with({{"TUTTI_INIT_TIMEOUT", "3s"}}));
  EXPECT_TRUE(errors.wait_for("status 1\n")) << errors.text();
  EXPECT_THAT(errors.text(), HasSubstr("PMIx_Init: there is no answer"));
}

TEST_F(Mpirun, WithoutTheLibraryTheErrorSaysWhatToDo) {
  const Errors errors;
  Process job(mpirun(2) + errors.rank(on_some_host + pmi_rank + " 1"),
              with({{"TUTTI_PMIX_LIBRARY", "/no/libpmix.so"}}));
  EXPECT_NE(job.wait(), 0) << job.report();
  for (const char* const part : {"/no/libpmix.so", "TUTTI_PMIX_LIBRARY", "MASTER_ADDR"})
    EXPECT_THAT(errors.text(), HasSubstr(part));
}

TEST_F(Mpirun, TheUsersPlaceTakesPrecedence) {
  const std::string port = std::to_string(unused_port());
  const Errors errors;
  Process job(mpirun(2) + errors.rank(),
              with({{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}, {"TUTTI_TLS", "1"}}));
  EXPECT_NE(job.wait(), 0) << job.report();
  // TLS needs a token, but there is no session that has a token.
  EXPECT_THAT(errors.text(), HasSubstr("TUTTI_TLS"));
}

// PMIx counts its users within a process, and disconnects from mpirun when the last user ends.
TEST_F(Mpirun, AProgramMayUseMpiToo) {
  for (const std::string order : {"first", "second"}) {
    Process job(mpirun(3) + by_pmix + Words{TUTTI_BIN_DIR "/tests/mpi_rank", order}, with({}));
    EXPECT_EQ(job.wait(), 0) << job.report();
    if (job.out().starts_with("no MPI"))
      GTEST_SKIP() << "libmpi.so.40 (Debian's package libopenmpi3) is not installed";
    EXPECT_EQ(job.out(), sum_on(3)) << job.report();
  }
}

}  // namespace
}  // namespace tutti::test
