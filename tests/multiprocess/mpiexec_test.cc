// Tests that ranks meet under MPICH's mpiexec without settings: rank 0 passes its session to the others
// through PMI-1.
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string mpiexec = "mpiexec.hydra";
const std::string pmi_rank = TUTTI_BIN_DIR "/tests/pmi_rank";

class Mpiexec : public testing::Test {
 protected:
  void SetUp() override {
    Process search({"sh", "-c", "command -v " + mpiexec});
    if (search.wait() != 0) GTEST_SKIP() << mpiexec << " (Debian's package mpich) is not installed";
  }
};

std::string sum_on(int ranks) {
  return "sum " + std::to_string(ranks * (ranks - 1) / 2) + " of " + std::to_string(ranks) + "\n";
}

// `Errors` is a file that receives the stderr of the ranks. Without it, mpiexec might lose the last lines: it
// ends the job as soon as a rank fails.
class Errors {
 public:
  // Returns the command of a rank whose stderr goes to the file.
  std::vector<std::string> rank() const { return {"sh", "-c", pmi_rank + " 1 2>>" + file_}; }
  std::string text() const {
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  ScratchFolder folder_;
  std::string file_ = folder_ / "errors";
};

std::vector<std::string> operator+(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(Mpiexec, RanksMeetWithoutSettings) {
  for (const int ranks : {1, 2, 3, 4, 7, 8, 16}) {
    Process job({mpiexec, "-n", std::to_string(ranks), pmi_rank, "1"});
    EXPECT_EQ(job.wait(), 0) << job.report();
    EXPECT_EQ(job.out(), sum_on(ranks) + "stayed\n") << job.report();
    EXPECT_EQ(job.err(), "");
  }
}

// Both addresses belong to this host. But mpiexec treats them as two hosts: it runs one of its own processes
// for each, and connects these processes over TCP.
TEST_F(Mpiexec, RanksOfSeveralHostsMeet) {
  Process job(
      {mpiexec, "-launcher", "fork", "-hosts", "127.0.0.1,127.0.0.2", "-ppn", "2", "-n", "4", pmi_rank, "2"});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_EQ(job.out(), sum_on(4) + sum_on(4) + "stayed\n") << job.report();
}

// mpiexec would kill rank 0 if the others ended without a goodbye.
TEST_F(Mpiexec, RanksMeetAgainAndLeaveOneAfterTheOther) {
  Process job({mpiexec, "-n", "3", pmi_rank, "3"});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_EQ(job.out(), sum_on(3) + sum_on(3) + sum_on(3) + "stayed\n") << job.report();
}

// Encryption needs a token. Here, only the session holds one.
TEST_F(Mpiexec, TheSessionHoldsAToken) {
  Process job({mpiexec, "-n", "3", pmi_rank, "1"}, {{"TUTTI_TLS", "1"}, {"TUTTI_TRANSPORTS", "tcp"}});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_EQ(job.out(), sum_on(3) + "stayed\n") << job.report();
}

TEST_F(Mpiexec, ARankThatDoesNotComeEndsInAnError) {
  for (const std::string when : {"before", "after"}) {
    const Errors errors;
    const std::vector<std::string> ranks = std::vector<std::string>{"-n", "2"} + errors.rank();
    const std::vector<std::string> absent = {"-n", "1", "sleep", "1000"};
    const auto& first = when == "before" ? absent : ranks;
    const auto& second = when == "before" ? ranks : absent;
    Process job(std::vector{mpiexec} + first + std::vector<std::string>{":"} + second,
                {{"TUTTI_INIT_TIMEOUT", "1s"}});
    EXPECT_NE(job.wait(), 0) << job.report();
    EXPECT_THAT(errors.text(), HasSubstr("not all ranks have come to the launcher's fence"));
    EXPECT_THAT(job.out(), Not(HasSubstr("sum")));
  }
}

TEST_F(Mpiexec, ALongWaitInTheFenceIsLogged) {
  const Errors errors;
  const std::vector<std::string> absent = {"-n", "1", "sleep", "1000", ":", "-n", "2"};
  Process job(std::vector{mpiexec} + absent + errors.rank(), {{"TUTTI_INIT_TIMEOUT", "12s"}});
  EXPECT_NE(job.wait(), 0) << job.report();
  EXPECT_THAT(errors.text(), HasSubstr("has waited for 10s for other ranks"));
}

TEST_F(Mpiexec, TheUsersPlaceTakesPrecedence) {
  const std::string port = std::to_string(unused_port());
  const Errors errors;
  Process job(std::vector<std::string>{mpiexec, "-n", "2"} + errors.rank(),
              {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}, {"TUTTI_TLS", "1"}});
  EXPECT_NE(job.wait(), 0) << job.report();
  EXPECT_THAT(errors.text(), HasSubstr("TUTTI_TLS"));  // TLS needs a token, and only a session would have one
}

}  // namespace
}  // namespace tutti::test
