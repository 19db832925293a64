// Tests the examples as real processes. They are started in every way that a user may choose:
// alone, by hand in several terminals, under `tutti run`, and with an existing session file.
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/multiprocess/example_world.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using std::chrono::minutes;
using testing::HasSubstr;

const auto examples = testing::Values("01_hello", "02_all_reduce", "03_broadcast_gather", "04_async_overlap",
                                      "05_train_digits", "06_survive");

class Example : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, Example, examples,
                         [](const auto& instance) { return std::string(instance.param); });

TEST_P(Example, RunsAlone) {
  Process process(command(GetParam(), {}));
  EXPECT_EQ(process.wait(minutes(10)), 0) << process.report();
  EXPECT_THAT(process.out(), HasSubstr(proof(GetParam(), 1)));
  EXPECT_EQ(process.err(), "");
}

TEST_P(Example, RunsUnderTheLauncher) {
  Process process(
      {TUTTI_BIN_DIR "/tutti", "run", "-n", "4", "--", std::string(TUTTI_BIN_DIR "/") + GetParam()});
  EXPECT_EQ(process.wait(minutes(10)), 0) << process.report();
  EXPECT_THAT(process.out(), HasSubstr(proof(GetParam(), 4)));
}

TEST(CExample, GreetsInTheOrderOfRanks) {
  Process process({TUTTI_BIN_DIR "/tutti", "run", "-n", "4", "--", TUTTI_BIN_DIR "/hello_c"});
  EXPECT_EQ(process.wait(minutes(10)), 0) << process.report();
  EXPECT_EQ(process.out(),
            "Greetings from process 0 of 4!\nGreetings from process 1 of 4!\n"
            "Greetings from process 2 of 4!\nGreetings from process 3 of 4!\n");
}

TEST_P(Example, ExplainsItsOptions) {
  Process process(command(GetParam(), {"--help"}));
  EXPECT_EQ(process.wait(), 0) << process.report();
  for (const char* option : {"--rank", "--world-size", "--init-method", "--backend"}) {
    EXPECT_THAT(process.out(), HasSubstr(option));
  }
}

// `ByHand` starts two ranks without a launcher, as a user would in two terminals.
class ByHand : public testing::TestWithParam<std::tuple<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(, ByHand, testing::Combine(testing::Values("tcp", "file", "env"), examples),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param)) + "_" +
                                  std::get<1>(instance.param);
                         });

TEST_P(ByHand, TwoProcessesMeet) {
  const auto& [scheme, example] = GetParam();
  const ScratchFolder folder;
  const std::uint16_t port = unused_port();
  ExampleWorld world;
  for (int rank = 0; rank < 2; ++rank) {
    if (scheme == std::string("env")) {
      world.start(example, {"--init-method=env://"}, by_environment(port, rank, 2));
    } else {
      const std::string url = scheme == std::string("tcp") ? tcp_url(port) : "file://" + (folder / "meet");
      world.start(example, by_url(url, rank, 2));
    }
  }
  world.expect_success();
  EXPECT_THAT(world[0].out(), HasSubstr(proof(example, 2)));
}

TEST(CommandLine, IsReadAsPyTorchUsersTypeIt) {
  const std::string url = tcp_url(unused_port());
  ExampleWorld world;
  world.start("01_hello", {"--rank=0", "--world-size=2", "--init-method=" + url, "--backend=tcp"});
  world.start("01_hello", {"--init-method", url + "?rank=1&world_size=2", "--backend", "auto"});
  world.expect_success();
}

// In a script for Gloo, only the name of the backend has to change.
TEST(CommandLine, IsThatOfScriptsForGloo) {
  const std::string port = std::to_string(unused_port());
  ExampleWorld world;
  for (const char* const rank : {"0", "1"}) {
    world.start("02_all_reduce",
                {"--rank", rank, "--world-size", "2", "--init-method", "env://", "--backend", "tutti"},
                {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}});
  }
  world.expect_success();
  EXPECT_THAT(world[0].out(), HasSubstr(proof("02_all_reduce", 2)));
}

TEST(CommandLine, TakesTheEnvironmentWithoutArguments) {
  const std::uint16_t port = unused_port();
  ExampleWorld world;
  for (int rank = 0; rank < 2; ++rank) world.start("01_hello", {}, by_environment(port, rank, 2));
  world.expect_success();
}

TEST(CommandLine, OrderOfArrivalDoesNotMatter) {
  const std::string url = tcp_url(unused_port());
  ExampleWorld world;
  Process& early = world.start("01_hello", by_url(url, 1, 2));
  EXPECT_EQ(early.wait(std::chrono::milliseconds(300)), std::nullopt) << early.report();
  world.start("01_hello", by_url(url, 0, 2));
  world.expect_success();
}

class FileSession : public testing::Test {
 protected:
  void expect_meeting() {
    ExampleWorld world;
    world.start_by_url("01_hello", url_, 2);
    world.expect_success();
    EXPECT_THAT(world[0].out(), HasSubstr(proof("01_hello", 2)));
  }
  void expect_meeting_last_rank_first() {
    ExampleWorld world;
    Process& early = world.start("01_hello", by_url(url_, 1, 2));
    EXPECT_EQ(early.wait(std::chrono::milliseconds(300)), std::nullopt) << early.report();
    world.start("01_hello", by_url(url_, 0, 2));
    world.expect_success();
  }
  bool wait_until_something_is_published() {
    for (int i = 0; i < 3000 && std::filesystem::is_empty(folder_.path()); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return !std::filesystem::is_empty(folder_.path());
  }
  void write(const std::string& contents) { std::ofstream(path_, std::ios::binary) << contents; }

  const ScratchFolder folder_;
  const std::string path_ = folder_ / "meet";
  const std::string url_ = "file://" + path_;
};

TEST_F(FileSession, WorksTwiceOnTheSamePath) {
  expect_meeting();
  expect_meeting();
  expect_meeting_last_rank_first();
}

TEST_F(FileSession, WorksAfterRankZeroWasKilledWhileItWaited) {
  {
    ExampleWorld world;
    Process& killed = world.start("01_hello", by_url(url_, 0, 2));
    ASSERT_TRUE(wait_until_something_is_published()) << killed.report();
    killed.signal(SIGKILL);
    EXPECT_EQ(killed.wait(), 128 + SIGKILL);
  }
  expect_meeting_last_rank_first();
  expect_meeting();
}

TEST_F(FileSession, WorksAfterAWholeRunWasKilled) {
  {
    ExampleWorld world;
    for (int rank = 0; rank < 2; ++rank) {
      Arguments arguments = by_url(url_, rank, 2);
      arguments.insert(arguments.end(), {"--epochs", "100000"});
      world.start("05_train_digits", arguments);
    }
    ASSERT_TRUE(world[0].wait_for_output("epoch  1")) << world[0].report();
    world[1].signal(SIGKILL);
    world[0].signal(SIGKILL);
    EXPECT_EQ(world[0].wait(), 128 + SIGKILL);
    EXPECT_EQ(world[1].wait(), 128 + SIGKILL);
  }
  expect_meeting();
  expect_meeting_last_rank_first();
}

TEST_F(FileSession, WorksOnAPathThatHoldsGarbageOfASession) {
  write("tutti-session 1\nthis is not one\n");
  ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  expect_meeting();
  write("");
  expect_meeting_last_rank_first();
}

}  // namespace
}  // namespace tutti::test
