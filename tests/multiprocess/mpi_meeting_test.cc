// Tests that ranks meet through MPI (mpi://), under the launchers of Open MPI and of MPICH. All launchers
// start the same program, which is not linked with any MPI.
#include <optional>
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

class MpiMeeting : public UnderEachMpi {
 protected:
  static void expect_success(const Words& command, const std::string& out) {
    Process job(command, with());
    EXPECT_EQ(job.wait(), 0) << job.report();
    EXPECT_EQ(job.out(), out) << job.report();
  }
  // Runs two ranks, which must fail, and returns their errors.
  static std::string errors_of(const std::string& mode, const Process::Environment& environment = {}) {
    const Errors errors;
    Process job(ranks(2, errors.rank(mpi_rank + " " + mode)), with(environment));
    EXPECT_NE(job.wait(), 0) << job.report();
    EXPECT_THAT(job.out(), Not(HasSubstr("sum"))) << job.report();
    return errors.text();
  }
};

TEST_P(MpiMeeting, RanksMeet) {
  for (const int number : {1, 2, 3, 4, 7, 8}) expect_success(ranks(number, {mpi_rank}), sum_on(number));
}

TEST_P(MpiMeeting, RanksMeetAgain) {
  expect_success(ranks(3, {mpi_rank, "plain", "3"}), sum_on(3) + sum_on(3) + sum_on(3));
}

TEST_P(MpiMeeting, TheProgramMayUseMpiBeforeAndAfter) {
  for (const std::string mode : {"first", "second", "ends"})
    expect_success(ranks(3, {mpi_rank, mode}), sum_on(3));
}

TEST_P(MpiMeeting, ASecondInitializationIsMpisOwnError) {
  Process job(ranks(2, {mpi_rank, "twice"}), with());
  job.wait();
  EXPECT_THAT(job.out(), HasSubstr(sum_on(2))) << job.report();
}

TEST_P(MpiMeeting, AnMpiThatIsFinalizedIsAnError) {
  EXPECT_THAT(errors_of("finalized"), AllOf(HasSubstr("already finalized"), HasSubstr(GetParam().library)));
}

TEST_P(MpiMeeting, ALibraryOfAnotherMpiIsRefused) {
  const std::string errors = errors_of("plain", {{"TUTTI_MPI_LIBRARY", GetParam().other_library}});
  if (errors.find("cannot open shared object") != std::string::npos)
    GTEST_SKIP() << GetParam().other_library << " is not installed";
  EXPECT_THAT(errors, AllOf(HasSubstr(GetParam().other_library), HasSubstr("_SIZE=2"),
                            HasSubstr("different MPIs"), HasSubstr("TUTTI_MPI_LIBRARY")));
}

TEST_P(MpiMeeting, WithoutTheLibraryTheErrorSaysWhatToDo) {
  EXPECT_THAT(errors_of("plain", {{"TUTTI_MPI_LIBRARY", "/no/libmpi.so"}}),
              AllOf(HasSubstr("/no/libmpi.so"), HasSubstr("TUTTI_MPI_LIBRARY")));
}

TEST_P(MpiMeeting, ARankThatIsKilledEndsTheJob) {
  for (const std::string mode : {"killed", "absent"}) {
    Process job(ranks(3, {mpi_rank, mode}), with());
    EXPECT_NE(job.wait(), 0) << job.report();
    EXPECT_THAT(job.out(), Not(HasSubstr("sum"))) << job.report();
  }
}

TEST_P(MpiMeeting, ARankThatDoesNotComeEndsInAnError) {
  EXPECT_THAT(errors_of("late", {{"TUTTI_INIT_TIMEOUT", "5s"}}), HasSubstr("within the time given"));
}

INSTANTIATE_TEST_SUITE_P(Any, MpiMeeting, each_mpi, name_of_mpi);

// A process that no launcher has started is the only rank of its world.
TEST(MpiMeetingAlone, AProcessWithoutALauncherMeetsItself) {
  Process process({mpi_rank}, {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
  const std::optional<int> outcome = process.wait();
  if (process.err().find("no MPI can be used") != std::string::npos) GTEST_SKIP() << process.err();
  EXPECT_EQ(outcome, 0) << process.report();
  EXPECT_EQ(process.out(), sum_on(1)) << process.report();
}

}  // namespace
}  // namespace tutti::test
