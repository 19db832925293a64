// Tests the errors of the transport mpi. The MPI is a fake whose world has one rank, except in the tests in
// which a rank is killed.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/multiprocess/installed_mpis.h"
#include "tests/multiprocess/launched_ranks.h"
#include "tests/support/process.h"

namespace tutti::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Process::Environment with_fake(const std::string& mode, Process::Environment environment = {}) {
  environment["TUTTI_TRANSPORTS"] = "mpi";
  environment.emplace("TUTTI_MPI_LIBRARY", TUTTI_FAKE_MPI);
  environment["FAKE_MPI"] = mode;
  return environment;
}

std::string error_of(const std::string& mode, const Process::Environment& environment = {}) {
  Process process({mpi_rank, "plain"}, with_fake(mode, environment));
  EXPECT_EQ(process.wait(), 1) << process.report();
  EXPECT_THAT(process.out(), Not(HasSubstr("finalized"))) << process.report();
  return process.err();
}

TEST(MpiTransportAlone, MpiIsFinalizedAtTheEnd) {
  Process process({mpi_rank, "plain", "2"}, with_fake(""));
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_EQ(process.out(), sum_on(1) + sum_on(1) + "finalized\n");
}

TEST(MpiTransportAlone, AnMpiForOneThreadIsRefused) {
  Process process({mpi_rank, "first"}, with_fake("funneled"));
  EXPECT_EQ(process.wait(), 1) << process.report();
  EXPECT_THAT(process.err(), AllOf(HasSubstr("calls by one thread only"), HasSubstr("MPI_THREAD_MULTIPLE"),
                                   HasSubstr("MPI_THREAD_SERIALIZED")));
}

TEST(MpiTransportAlone, AFailedCallIsToldWithMpisOwnText) {
  EXPECT_THAT(error_of("receive_fails"), HasSubstr("MPI_Irecv fails: the fake's error 16"));
  EXPECT_THAT(error_of("copy_fails"), HasSubstr("MPI_Comm_idup fails: the fake's error 16"));
}

TEST(MpiTransportAlone, AnMpiThatIsMissingIsToldWithItsFile) {
  EXPECT_THAT(error_of("", {{"TUTTI_MPI_LIBRARY", "/no/libmpi.so"}}),
              AllOf(HasSubstr("/no/libmpi.so"), HasSubstr("TUTTI_MPI_LIBRARY")));
}

class MpiTransportFailures : public UnderEachMpi {};

// The launcher is told not to end the job when a rank dies. So the other ranks find the loss themselves. They
// must not wait for the dead rank in MPI_Finalize.
TEST_P(MpiTransportFailures, TheOtherRanksNameARankThatWasKilled) {
  const Words keep_running =
      GetParam().name == "Mpich" ? Words{"-disable-auto-cleanup"} : Words{"--enable-recovery"};
  const Errors errors;
  Process job(GetParam().launcher + keep_running + Words{"-n", "3"} + errors.rank(mpi_rank + " killed"),
              with({{"TUTTI_TRANSPORTS", "mpi"}}));
  EXPECT_NE(job.wait(std::chrono::minutes(3)), 0) << job.report();
  EXPECT_THAT(errors.text(), AllOf(HasSubstr("peer_lost"), HasSubstr("rank 1"))) << job.report();
}

INSTANTIATE_TEST_SUITE_P(Any, MpiTransportFailures, each_mpi, name_of_mpi);

}  // namespace
}  // namespace tutti::test
