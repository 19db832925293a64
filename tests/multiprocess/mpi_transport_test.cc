// Tests the transport mpi with the MPIs that are installed. All launchers start the same programs, which are
// not linked with any MPI. Only the transport mpi is allowed, so every message travels through MPI.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/multiprocess/example_world.h"
#include "tests/multiprocess/installed_mpis.h"
#include "tests/multiprocess/launched_ranks.h"
#include "tests/support/process.h"

namespace tutti::test {
namespace {

using std::chrono::minutes;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string tutti_command = TUTTI_BIN_DIR "/tutti";

class MpiTransport : public UnderEachMpi {
 protected:
  static Process::Environment through_mpi(Process::Environment environment = {}) {
    environment["TUTTI_TRANSPORTS"] = "mpi";
    return with(std::move(environment));
  }
  static std::string output_of(const Words& command, const Process::Environment& environment = {}) {
    Process job(command, through_mpi(environment));
    EXPECT_EQ(job.wait(minutes(10)), 0) << job.report();
    return job.out();
  }
  // Runs ranks that must fail, and returns their errors.
  static std::string errors_of(int number, const std::string& mode,
                               const Process::Environment& environment = {}, const Words& options = {}) {
    const Errors errors;
    Process job(GetParam().launcher + options + Words{"-n", std::to_string(number)} +
                    errors.rank(mpi_rank + " " + mode),
                through_mpi(environment));
    EXPECT_NE(job.wait(minutes(5)), 0) << job.report();
    return errors.text();
  }
};

// The ranks of these tests are threads of one process, which sends messages to itself.
TEST_P(MpiTransport, KeepsThePromisesOfEveryTransport) {
  const std::string out = output_of(ranks(1, {TUTTI_BIN_DIR "/tests/conformance_mpi", "--gtest_color=no"}),
                                    {{"TUTTI_TEST_MPI", "launcher"}});
  EXPECT_THAT(out, AllOf(HasSubstr("[  PASSED  ]"), Not(HasSubstr("SKIPPED")))) << out;
}

TEST_P(MpiTransport, RunsTheExamples) {
  for (const char* const example : {"01_hello", "02_all_reduce", "03_broadcast_gather", "04_async_overlap",
                                    "05_train_digits", "06_survive"}) {
    for (const int number : {1, 4})
      EXPECT_THAT(output_of(ranks(number, command(example, {}))), HasSubstr(proof(example, number)))
          << example;
  }
}

TEST_P(MpiTransport, CarriesAJobThatMeetsThroughMpi) {
  for (const int number : {1, 2, 3, 4, 7, 8})
    EXPECT_EQ(output_of(ranks(number, {mpi_rank, "plain", "2"})), sum_on(number) + sum_on(number));
}

TEST_P(MpiTransport, TheProgramMayUseMpiBeforeAndAfter) {
  for (const std::string mode : {"first", "second", "ends"})
    EXPECT_EQ(output_of(ranks(3, {mpi_rank, mode})), sum_on(3)) << mode;
}

TEST_P(MpiTransport, ASecondInitializationIsMpisOwnError) {
  Process job(ranks(2, {mpi_rank, "twice"}), through_mpi());
  job.wait(minutes(5));
  EXPECT_THAT(job.out(), HasSubstr(sum_on(2))) << job.report();
}

TEST_P(MpiTransport, AnMpiThatIsFinalizedIsAnError) {
  EXPECT_THAT(errors_of(2, "finalized"),
              AllOf(HasSubstr("already finalized"), HasSubstr(GetParam().library)));
}

TEST_P(MpiTransport, ALibraryOfAnotherMpiIsRefused) {
  const std::string errors = errors_of(2, "plain", {{"TUTTI_MPI_LIBRARY", GetParam().other_library}});
  if (errors.find("cannot open shared object") != std::string::npos)
    GTEST_SKIP() << GetParam().other_library << " is not installed";
  EXPECT_THAT(errors, AllOf(HasSubstr(GetParam().other_library), HasSubstr("different MPIs")));
}

TEST_P(MpiTransport, ARankThatIsKilledEndsTheJob) {
  for (const std::string mode : {"killed", "absent"}) {
    Process job(ranks(3, {mpi_rank, mode}), through_mpi());
    EXPECT_NE(job.wait(minutes(5)), 0) << job.report();
    EXPECT_THAT(job.out(), Not(HasSubstr("sum"))) << job.report();
  }
}

TEST_P(MpiTransport, IsMeasuredByTheBenchmark) {
  const std::string out = output_of(ranks(4, {tutti_command, "bench", "all_reduce", "--transport", "mpi",
                                              "--max-bytes", "64K", "--iterations", "5"}));
  EXPECT_THAT(out, HasSubstr("all_reduce")) << out;
}

TEST_P(MpiTransport, IsListedWithItsLibrary) {
  EXPECT_THAT(output_of(ranks(1, {tutti_command, "info"})),
              HasSubstr("mpi (messages of MPI): can run, with " + GetParam().library));
}

TEST_P(MpiTransport, IsNotEncrypted) {
  EXPECT_THAT(errors_of(2, "plain", {{"TUTTI_TLS", "1"}}), HasSubstr("would not be encrypted"));
}

INSTANTIATE_TEST_SUITE_P(Any, MpiTransport, each_mpi, name_of_mpi);

}  // namespace
}  // namespace tutti::test
