// The examples as real processes, started in every way that a user may: alone, by hand in several terminals,
// under `tutti run`, and wrongly.
#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace tutti::test {
namespace {

using std::chrono::minutes;
using testing::AllOf;
using testing::HasSubstr;

using Arguments = std::vector<std::string>;
using Environment = Process::Environment;

std::string program(const std::string& name) { return std::string(TUTTI_BIN_DIR "/") + name; }

Arguments command(const std::string& name, const Arguments& arguments) {
  Arguments words{program(name)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Arguments by_url(const std::string& url, int rank, int size) {
  return {"--init-method", url, "--rank", std::to_string(rank), "--world-size", std::to_string(size)};
}

Environment by_environment(std::uint16_t port, int rank, int size) {
  return {{"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)},
          {"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)}};
}

std::string tcp_url(std::uint16_t port) { return "tcp://127.0.0.1:" + std::to_string(port); }

// Several processes, each ended or killed with the test.
class World {
 public:
  Process& start(const std::string& name, const Arguments& arguments, const Environment& environment = {}) {
    return processes_.emplace_back(command(name, arguments), environment);
  }
  void start_by_url(const std::string& name, const std::string& url, int size) {
    for (int rank = 0; rank < size; ++rank) start(name, by_url(url, rank, size));
  }
  void expect_success() {
    for (Process& process : processes_) EXPECT_EQ(process.wait(minutes(10)), 0) << process.report();
  }
  Process& operator[](std::size_t index) { return processes_[index]; }

 private:
  std::deque<Process> processes_;
};

// What only the right result prints, on rank 0.
std::string proof(const std::string& example, int size) {
  const std::string n = std::to_string(size);
  if (example == "01_hello") return "All " + n + " ranks met: together they counted to " + n;
  if (example == "02_all_reduce") return "sum, in place: [" + n + ", ";
  if (example == "03_broadcast_gather") return "pi is 3.141592654, and all " + n + " ranks know it";
  if (example == "04_async_overlap") return "all 8 sums are right";
  return "all " + n + " ranks hold bitwise equal weights (hash ";
}

const auto examples = testing::Values("01_hello", "02_all_reduce", "03_broadcast_gather", "04_async_overlap",
                                      "05_train_digits", "06_survive");

// ---- started correctly
// --------------------------------------------------------------------------------------------

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
  Process process({program("tutti"), "run", "-n", "4", "--", program(GetParam())});
  EXPECT_EQ(process.wait(minutes(10)), 0) << process.report();
  EXPECT_THAT(process.out(), HasSubstr(proof(GetParam(), 4)));
}

TEST(CExample, GreetsInTheOrderOfRanks) {
  Process process({program("tutti"), "run", "-n", "4", "--", program("hello_c")});
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

// Two terminals, no launcher.
class ByHand : public testing::TestWithParam<std::tuple<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(, ByHand, testing::Combine(testing::Values("tcp", "file", "env"), examples),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param)) + "_" +
                                  std::get<1>(instance.param);
                         });

TEST_P(ByHand, TwoProcessesMeet) {
  const auto& [scheme, example] = GetParam();
  const TemporaryFolder folder;
  const std::uint16_t port = unused_port();
  World world;
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
  World world;
  world.start("01_hello", {"--rank=0", "--world-size=2", "--init-method=" + url, "--backend=tcp"});
  world.start("01_hello", {"--init-method", url + "?rank=1&world_size=2", "--backend", "auto"});
  world.expect_success();
}

TEST(CommandLine, TakesTheEnvironmentWithoutArguments) {
  const std::uint16_t port = unused_port();
  World world;
  for (int rank = 0; rank < 2; ++rank) world.start("01_hello", {}, by_environment(port, rank, 2));
  world.expect_success();
}

TEST(CommandLine, OrderOfArrivalDoesNotMatter) {
  const std::string url = tcp_url(unused_port());
  World world;
  Process& early = world.start("01_hello", by_url(url, 1, 2));
  EXPECT_EQ(early.wait(std::chrono::milliseconds(300)), std::nullopt) << early.report();
  world.start("01_hello", by_url(url, 0, 2));
  world.expect_success();
}

// ---- a file that was there before
// ---------------------------------------------------------------------------------

class FileSession : public testing::Test {
 protected:
  void expect_meeting() {
    World world;
    world.start_by_url("01_hello", url_, 2);
    world.expect_success();
    EXPECT_THAT(world[0].out(), HasSubstr(proof("01_hello", 2)));
  }
  void expect_meeting_last_rank_first() {
    World world;
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

  const TemporaryFolder folder_;
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
    World world;
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
    World world;
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

// ---- started wrongly
// ----------------------------------------------------------------------------------------------

// One line that holds all of `words`, and exit status 1.
void expect_error(Process& process, const std::vector<std::string>& words) {
  EXPECT_EQ(process.wait(), 1) << process.report();
  const std::string text = process.err();
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << process.report();
  EXPECT_THAT(text, testing::StartsWith("01_hello: "));
  for (const std::string& word : words) EXPECT_THAT(text, HasSubstr(word)) << process.report();
}

struct Mistake {
  const char* name;
  Arguments arguments;
  Environment environment;
  std::vector<std::string> words;  // that the message must hold
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class WrongSettings : public testing::TestWithParam<Mistake> {};

TEST_P(WrongSettings, GiveOneClearError) {
  Environment environment = GetParam().environment;
  environment.emplace("TUTTI_INIT_TIMEOUT", "5s");
  Process process(command("01_hello", GetParam().arguments), environment);
  expect_error(process, GetParam().words);
}

const std::vector<Mistake> mistakes{
    {"RankArgumentTooLarge", by_url("tcp://127.0.0.1:1", 2, 2), {}, {"rank 2", "world size", "2"}},
    {"RankArgumentNegative", by_url("tcp://127.0.0.1:1", -1, 2), {}, {"rank", "-1"}},
    {"RankOfTheUrlTooLarge", {"--init-method=tcp://127.0.0.1:1?rank=7&world_size=3"}, {}, {"7", "3"}},
    {"RankVariableTooLarge", {}, by_environment(1, 5, 4), {"RANK", "5", "WORLD_SIZE", "4"}},
    {"TuttiRankTooLarge",
     {"--init-method=tcp://127.0.0.1:1"},
     {{"TUTTI_RANK", "5"}, {"TUTTI_WORLD_SIZE", "4"}},
     {"TUTTI_RANK", "5", "TUTTI_WORLD_SIZE", "4"}},
    {"RankNotANumber",
     {},
     {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}, {"RANK", "first"}, {"WORLD_SIZE", "2"}},
     {"RANK", "first"}},
    {"ArgumentAgainstUrl",
     {"--init-method=tcp://127.0.0.1:1?rank=1&world_size=3", "--rank=0"},
     {},
     {"rank", "0", "1"}},
    {"ArgumentAgainstTuttiVariable",
     by_url("tcp://127.0.0.1:1", 0, 2),
     {{"TUTTI_WORLD_SIZE", "3"}, {"TUTTI_RANK", "0"}},
     {"TUTTI_WORLD_SIZE", "2", "3"}},
    {"NoMasterPort", {}, {{"MASTER_ADDR", "127.0.0.1"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}}, {"MASTER_PORT"}},
    {"NoMasterPortWithEnvUrl",
     {"--init-method=env://"},
     {{"MASTER_ADDR", "127.0.0.1"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}},
     {"MASTER_PORT"}},
    {"NoRank", {"--init-method=tcp://127.0.0.1:1", "--world-size=2"}, {}, {"rank"}},
    {"NoWorldSize", {"--init-method=tcp://127.0.0.1:1", "--rank=0"}, {}, {"world"}},
    {"UnknownScheme", by_url("tpc://127.0.0.1:1", 0, 2), {}, {"tpc://"}},
    {"UrlWithoutPort", by_url("tcp://127.0.0.1", 0, 2), {}, {"tcp://127.0.0.1", "port"}},
    {"UrlWithBadPort", by_url("tcp://127.0.0.1:99999", 0, 2), {}, {"99999"}},
    {"FolderOfFileMissing", by_url("file:///nonexistent/folder/meet", 0, 2), {}, {"/nonexistent/folder"}},
    {"UnresolvableName", by_url("tcp://no-such-host.invalid:29500", 1, 2), {}, {"no-such-host.invalid"}},
    {"UnknownBackend",
     {"--rank=0", "--world-size=1", "--init-method=tcp://127.0.0.1:1", "--backend=warp"},
     {},
     {"warp"}},
    {"UnknownArgument", {"--bogus=1"}, {}, {"--bogus"}},
    {"ArgumentNotANumber", {"--rank=x"}, {}, {"--rank", "x"}},
};
INSTANTIATE_TEST_SUITE_P(, WrongSettings, testing::ValuesIn(mistakes),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(WrongWorld, NobodyAtRankZero) {
  const std::uint16_t port = unused_port();
  Process process(command("01_hello", by_url(tcp_url(port), 1, 2)), {{"TUTTI_INIT_TIMEOUT", "4s"}});
  expect_error(process, {"127.0.0.1", std::to_string(port)});
}

TEST(WrongWorld, OneRankMissing) {
  const std::string url = tcp_url(unused_port());
  World world;
  for (const int rank : {0, 2})
    world.start("01_hello", by_url(url, rank, 3), {{"TUTTI_INIT_TIMEOUT", "10s"}});
  for (int i = 0; i < 2; ++i) expect_error(world[i], {"rank 1 has not arrived"});
}

TEST(WrongWorld, SameRankTwice) {
  const std::string url = tcp_url(unused_port());
  World world;
  for (const int rank : {0, 1, 1})
    world.start("01_hello", by_url(url, rank, 3), {{"TUTTI_INIT_TIMEOUT", "30s"}});
  for (int i = 0; i < 3; ++i) expect_error(world[i], {"rank 1 is taken twice", "pid"});
}

TEST(WrongWorld, RankZeroTwice) {
  const std::uint16_t port = unused_port();
  World world;
  for (int i = 0; i < 2; ++i)
    world.start("01_hello", by_url(tcp_url(port), 0, 2), {{"TUTTI_INIT_TIMEOUT", "10s"}});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(world[i].wait(), 1) << world[i].report();
  EXPECT_THAT(world[0].err() + world[1].err(), AllOf(HasSubstr(std::to_string(port)), HasSubstr("in use"),
                                                     HasSubstr("rank 1 has not arrived")));
}

TEST(WrongWorld, DifferentWorldSizes) {
  const std::string url = tcp_url(unused_port());
  World world;
  world.start("01_hello", by_url(url, 0, 2), {{"TUTTI_INIT_TIMEOUT", "30s"}});
  world.start("01_hello", by_url(url, 1, 3), {{"TUTTI_INIT_TIMEOUT", "30s"}});
  for (int i = 0; i < 2; ++i) expect_error(world[i], {"world size", "2 on rank 0", "3 on rank 1"});
}

TEST(WrongWorld, PortInUse) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  {
    // Both ends of it: who serves cannot, and who joins meets somebody who does not speak our language.
    World world;
    for (int rank = 0; rank < 2; ++rank) {
      world.start("01_hello", by_url(tcp_url(port), rank, 2), {{"TUTTI_INIT_TIMEOUT", "6s"}});
    }
    expect_error(world[0], {std::to_string(port), "in use"});
    expect_error(world[1], {std::to_string(port)});
  }
  close(listener);
}

// ---- training
// -----------------------------------------------------------------------------------------------------

// The number after `label`, or NaN.
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
  World world;
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

// Early on the loss is large, so that what only the order of additions may differ in shows best.
TEST(Training, LearnsTheSameOnAnyNumberOfRanks) {
  const Arguments short_run{"--epochs", "12"};
  const Training alone = train(1, short_run);
  for (const int size : {2, 3, 4, 7}) {
    const Training together = train(size, short_run);
    EXPECT_NEAR(together.loss, alone.loss, 1e-3) << size << " ranks\n" << together.out << alone.out;
  }
  // The comparison can tell: another seed, another loss.
  const Training other = train(1, {"--epochs", "12", "--seed", "2"});
  EXPECT_GT(std::abs(other.loss - alone.loss), 1e-3) << other.out << alone.out;
}

TEST(Training, EndsWithTheSameLossOnOneRankAndOnFour) { EXPECT_NEAR(train(4).loss, train(1).loss, 1e-3); }

// Some ranks have no image of a small batch at all.
TEST(Training, SmallBatchesLeaveRanksWithoutWork) {
  const Arguments small{"--batch=3", "--lr=0.002", "--epochs=12"};
  EXPECT_NEAR(train(4, small).loss, train(1, small).loss, 1e-3);
}

TEST(Training, TooLittleTrainingIsAFailure) {
  Process process(command("05_train_digits", {"--epochs=1"}));
  EXPECT_EQ(process.wait(), 1) << process.report();
  EXPECT_THAT(process.out(), HasSubstr("less than 95 %"));
}

// Whoever dies, the others go on, and end with equal weights.
TEST(Survive, AnyRankMayDie) {
  for (const int victim : {0, 2, 3}) {
    const std::string url = tcp_url(unused_port());
    World world;
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
              AllOf(HasSubstr("was ended by signal 9 (Killed)"), HasSubstr("; the others go on")));
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
