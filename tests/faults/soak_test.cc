// Runs the soak (soak/main.cc) for a short while, and checks that its actions depend only on its seed.
#include <fstream>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

class Soak : public testing::Test {
 protected:
  // Runs the soak, which must succeed, and returns its log.
  std::string log_of(const std::string& name, std::vector<std::string> options) {
    const std::string log = folder_ / name;
    options.insert(options.begin(), {std::string(TUTTI_BIN_DIR) + "/tests/soak", "--log", log});
    Process soak(options);
    EXPECT_EQ(soak.wait(std::chrono::minutes(10)), 0) << soak.report();
    std::printf("%s", soak.err().c_str());
    std::ifstream file(log);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

 private:
  ScratchFolder folder_;
};

TEST_F(Soak, LosesAndCorruptsNothing) {
  const std::string seed = std::to_string(std::random_device{}());
  const std::string log = log_of("log", {"--seconds", "8", "--seed", seed});
  EXPECT_THAT(log, testing::HasSubstr("as planned\n"));
}

TEST_F(Soak, DoesTheSameForTheSameSeed) {
  const std::string first = log_of("first", {"--episodes", "3", "--seed", "2"});
  EXPECT_EQ(first, log_of("second", {"--episodes", "3", "--seed", "2"}));
  EXPECT_THAT(first, testing::HasSubstr("is killed"));
  EXPECT_EQ(log_of("plan", {"--plan", "--episodes", "9", "--seed", "2"}),
            log_of("again", {"--plan", "--episodes", "9", "--seed", "2"}));
  EXPECT_NE(log_of("plan", {"--plan", "--episodes", "9", "--seed", "2"}),
            log_of("other", {"--plan", "--episodes", "9", "--seed", "6"}));
}

}  // namespace
}  // namespace tutti::test
