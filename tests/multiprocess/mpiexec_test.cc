// Tests that ranks meet under MPICH's mpiexec without settings. Rank 0 passes its session to the
// other ranks through PMI-1, the interface of mpiexec.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/multiprocess/launched_ranks.h"
#include "tests/support/process.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string mpiexec = "mpiexec.hydra";

class Mpiexec : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_installed(mpiexec)) GTEST_SKIP() << mpiexec << " (Debian's package mpich) is not installed";
  }
};

TEST_F(Mpiexec, RanksMeetWithoutSettings) {
  for (const int ranks : {1, 2, 3, 4, 7, 8, 16}) {
    Process job({mpiexec, "-n", std::to_string(ranks), pmi_rank, "1"});
    EXPECT_EQ(job.wait(), 0) << job.report();
    EXPECT_EQ(job.out(), sum_on(ranks) + "stayed\n") << job.report();
    EXPECT_EQ(job.err(), "");
  }
}

// Both addresses belong to this host, but mpiexec treats them as two hosts. It runs one of its own
// processes for each address, and connects these processes over TCP.
TEST_F(Mpiexec, RanksOfSeveralHostsMeet) {
  Process job(
      {mpiexec, "-launcher", "fork", "-hosts", "127.0.0.1,127.0.0.2", "-ppn", "2", "-n", "4", pmi_rank, "2"});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_EQ(job.out(), sum_on(4) + sum_on(4) + "stayed\n") << job.report();
}

// mpiexec would kill rank 0 if the other ranks ended without a goodbye.
TEST_F(Mpiexec, RanksMeetAgainAndLeaveOneAfterTheOther) {
  Process job({mpiexec, "-n", "3", pmi_rank, "3"});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_EQ(job.out(), sum_on(3) + sum_on(3) + sum_on(3) + "stayed\n") << job.report();
}

// Encryption needs a token, and only the session has one in this test.
TEST_F(Mpiexec, TheSessionHoldsAToken) {
  Process job({mpiexec, "-n", "3", pmi_rank, "1"}, {{"TUTTI_TLS", "1"}, {"TUTTI_TRANSPORTS", "tcp"}});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_EQ(job.out(), sum_on(3) + "stayed\n") << job.report();
}

TEST_F(Mpiexec, ARankThatDoesNotComeEndsInAnError) {
  for (const std::string when : {"before", "after"}) {
    const Errors errors;
    const Words ranks = Words{"-n", "2"} + errors.rank();
    const Words absent = {"-n", "1", "sleep", "1000"};
    const auto& first = when == "before" ? absent : ranks;
    const auto& second = when == "before" ? ranks : absent;
    Process job(Words{mpiexec} + first + Words{":"} + second, {{"TUTTI_INIT_TIMEOUT", "1s"}});
    EXPECT_NE(job.wait(), 0) << job.report();
    EXPECT_THAT(errors.text(), HasSubstr("not all ranks have come to the launcher's fence"));
    EXPECT_THAT(job.out(), Not(HasSubstr("sum")));
  }
}

TEST_F(Mpiexec, ALongWaitInTheFenceIsLogged) {
  const Errors errors;
  const Words absent = {"-n", "1", "sleep", "1000", ":", "-n", "2"};
  Process job(Words{mpiexec} + absent + errors.rank(), {{"TUTTI_INIT_TIMEOUT", "12s"}});
  EXPECT_NE(job.wait(), 0) << job.report();
  EXPECT_THAT(errors.text(), HasSubstr("has waited for 10s for other ranks"));
}

TEST_F(Mpiexec, TheUsersPlaceTakesPrecedence) {
  const std::string port = std::to_string(unused_port());
  const Errors errors;
  Process job(Words{mpiexec, "-n", "2"} + errors.rank(),
              {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}, {"TUTTI_TLS", "1"}});
  EXPECT_NE(job.wait(), 0) << job.report();
  // TLS needs a token, but there is no session that has a token.
  EXPECT_THAT(errors.text(), HasSubstr("TUTTI_TLS"));
}

}  // namespace
}  // namespace tutti::test
