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
using testing::ContainsRegex;
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

// A shell starts each rank, and ends only when all three ranks have ended. So Open MPI's launcher does not
// notice that a rank dies. MPICH's launcher notices it, but is told not to end the job, and its signal is
// ignored. The other ranks find the loss themselves. They must not wait for the dead rank in MPI_Finalize.
TEST_P(MpiTransportFailures, TheOtherRanksNameARankThatWasKilledAndEnd) {
  const Errors errors;
  const Words options = GetParam().name == "Mpich" ? Words{"-disable-auto-cleanup"} : Words{};
  const std::string wait_for_all =
      "for i in $(seq 3000); do [ $(grep -c ended /proc/$$/fd/2) -lt 3 ] || exit; sleep 0.1; done";
  Process job(GetParam().launcher + options + Words{"-n", "3"} +
                  errors.rank("trap '' USR1; " + mpi_rank + " killed; echo ended $? >&2; " + wait_for_all),
              with({{"TUTTI_TRANSPORTS", "mpi"}}));
  EXPECT_TRUE(job.wait(2 * ample).has_value()) << job.report();
  EXPECT_THAT(errors.text(), AllOf(HasSubstr("ended 137"), ContainsRegex("ended 1\n(.*\n)*ended 1\n"),
                                   HasSubstr("peer_lost: rank 0"), HasSubstr("peer_lost: rank 2"),
                                   HasSubstr("rank 1 (host")));
}

INSTANTIATE_TEST_SUITE_P(Any, MpiTransportFailures, each_mpi, name_of_mpi);

}  // namespace
}  // namespace tutti::test
