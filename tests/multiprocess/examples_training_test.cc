// Tests the examples that train a model. The result does not depend on the number of ranks, and the
// other ranks continue after a rank has died.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/multiprocess/example_world.h"

namespace tutti::test {
namespace {

using std::chrono::minutes;
using testing::AllOf;
using testing::HasSubstr;

// Returns the number after `label`, or NaN.
double number_after(const std::string& text, const std::string& label) {
  const std::size_t at = text.find(label);
  return at == text.npos ? NAN : std::strtod(text.c_str() + at + label.size(), nullptr);
}

struct Training {
  double loss = NAN;
  double accuracy = NAN;
  std::string out;
};

Training train(int size, const Arguments& extra = {}) {
  const std::string url = tcp_url(unused_port());
  ExampleWorld world;
  for (int rank = 0; rank < size; ++rank) {
    Arguments arguments = by_url(url, rank, size);
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    world.start("05_train_digits", arguments);
  }
  world.expect_success();
  const std::string out = world[0].out();
  EXPECT_THAT(out, HasSubstr(proof("05_train_digits", size)));
  return {number_after(out, "final training loss "), number_after(out, "final test accuracy "), out};
}

TEST(Training, ReadsDigitsAndReportsProgress) {
  const Training result = train(4);
  EXPECT_GE(result.accuracy, 95.0) << result.out;
  for (int epoch = 1; epoch <= 30; ++epoch) {
    const std::string label =
        std::string(epoch < 10 ? "epoch  " : "epoch ") + std::to_string(epoch) + ": loss ";
    EXPECT_FALSE(std::isnan(number_after(result.out, label))) << label << "\n" << result.out;
  }
  EXPECT_THAT(result.out, HasSubstr(" samples/s\n"));
}

// The loss is large at the beginning of the training, and a different order of additions changes it
// most at that time. So short runs are the hardest test.
TEST(Training, LearnsTheSameOnAnyNumberOfRanks) {
  const Arguments short_run{"--epochs", "12"};
  const Training alone = train(1, short_run);
  for (const int size : {2, 3, 4, 7}) {
    const Training together = train(size, short_run);
    EXPECT_NEAR(together.loss, alone.loss, 1e-3) << size << " ranks\n" << together.out << alone.out;
  }
  // Another seed gives another loss, which shows that the comparison notices differences.
  const Training other = train(1, {"--epochs", "12", "--seed", "2"});
  EXPECT_GT(std::abs(other.loss - alone.loss), 1e-3) << other.out << alone.out;
}

TEST(Training, EndsWithTheSameLossOnOneRankAndOnFour) { EXPECT_NEAR(train(4).loss, train(1).loss, 1e-3); }

// The batch is so small that some ranks have no image at all.
TEST(Training, SmallBatchesLeaveRanksWithoutWork) {
  const Arguments small{"--batch=3", "--lr=0.002", "--epochs=12"};
  EXPECT_NEAR(train(4, small).loss, train(1, small).loss, 1e-3);
}

TEST(Training, TooLittleTrainingIsAFailure) {
  Process process(command("05_train_digits", {"--epochs=1"}));
  EXPECT_EQ(process.wait(), 1) << process.report();
  EXPECT_THAT(process.err(), HasSubstr("less than 95 %"));
}

// The survivors continue and end with equal weights, whichever rank dies.
TEST(Survive, AnyRankMayDie) {
  for (const int victim : {0, 2, 3}) {
    const std::string url = tcp_url(unused_port());
    ExampleWorld world;
    for (int rank = 0; rank < 4; ++rank) {
      Arguments arguments = by_url(url, rank, 4);
      arguments.insert(arguments.end(), {"--victim", std::to_string(victim), "--at", "30"});
      world.start("06_survive", arguments);
    }
    for (int rank = 0; rank < 4; ++rank) {
      Process& process = world[static_cast<std::size_t>(rank)];
      EXPECT_EQ(process.wait(minutes(10)), rank == victim ? 128 + SIGKILL : 0) << process.report();
      if (rank == victim) continue;
      EXPECT_THAT(process.out(), HasSubstr("3 ranks go on from step 30")) << process.report();
      EXPECT_THAT(process.out(), HasSubstr("rank " + std::to_string(victim) + " (host "));
    }
    const std::string out = world[victim == 0 ? 1 : 0].out();
    EXPECT_THAT(out, HasSubstr("all 3 ranks hold bitwise equal weights"));
  }
}

TEST(Survive, UnderTheLauncher) {
  Process launcher({TUTTI_BIN_DIR "/tutti", "run", "-n", "4", "--enable-recovery",
                    TUTTI_BIN_DIR "/06_survive", "--victim", "1", "--at", "30"});
  EXPECT_EQ(launcher.wait(minutes(10)), 0) << launcher.report();
  EXPECT_THAT(launcher.err(),
              AllOf(HasSubstr("was ended by signal 9 (Killed)"), HasSubstr("; the others continue")));
  EXPECT_THAT(launcher.out(), HasSubstr("all 3 ranks hold bitwise equal weights"));
}

TEST(Training, DataAreWhatTheirReadmeSays) {
  Process process({"sha256sum", "digits.csv"}, {}, TUTTI_SOURCE_DIR "/examples/data");
  ASSERT_EQ(process.wait(), 0) << process.report();
  std::ifstream file(TUTTI_SOURCE_DIR "/examples/data/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(readme, HasSubstr(process.out().substr(0, 64)));
}

}  // namespace
}  // namespace tutti::test
