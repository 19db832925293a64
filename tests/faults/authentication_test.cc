// Tests that a job refuses processes without the token or with another token, and that such
// processes do not disturb the job.
#include <filesystem>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/faults/job.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* token = "4d7c1f0a93b25e68";

TEST(Authentication, AWrongTokenOrNoneIsRefusedAndTheJobGoesOn) {
  Job job(2, {{"TUTTI_TOKEN", token}}, 1);
  const std::vector<std::optional<std::string>> others = {"another token", std::nullopt};
  for (const auto& other : others) {
    Process& stranger = job.start(1, {{"TUTTI_TOKEN", other}});
    EXPECT_EQ(stranger.wait(), 1) << stranger.report();
    EXPECT_THAT(stranger.err(),
                AllOf(HasSubstr("unauthenticated"), HasSubstr("token"), HasSubstr("127.0.0.1:")));
    EXPECT_THAT(stranger.err(), Not(HasSubstr(token)));
    job.ranks.pop_back();
  }
  EXPECT_THAT(job[0].err(),
              AllOf(HasSubstr("another token"), HasSubstr("has no token"), Not(HasSubstr(token))));
  job.start(1);
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

TEST(Authentication, WhoWaitsInVainHearsWhoWasTurnedAway) {
  Job job(2, {{"TUTTI_INIT_TIMEOUT", "15s"}}, 1);
  Process& guarded = job.start(1, {{"TUTTI_TOKEN", token}});
  EXPECT_EQ(guarded.wait(), 1) << guarded.report();
  EXPECT_THAT(guarded.err(), AllOf(HasSubstr("unauthenticated"), HasSubstr("has no token")));
  EXPECT_EQ(job[0].wait(), 1) << job[0].report();
  EXPECT_THAT(job[0].err(), AllOf(HasSubstr("rank 1 has not arrived"), HasSubstr("turned away meanwhile")));
}

TEST(Authentication, TheTokenMayComeFromAFile) {
  const ScratchFolder folder;
  std::ofstream(folder / "token") << token << "\n";
  Job job(2, {{"TUTTI_TOKEN_FILE", folder / "token"}}, 1);
  job.start(1, {{"TUTTI_TOKEN_FILE", std::nullopt}, {"TUTTI_TOKEN", token}});
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

TEST(Authentication, AFileSessionIsClosedToWhoCannotReadTheFile) {
  const ScratchFolder folder;
  const std::string path = folder / "session";
  Job job(2, {{"TUTTI_INIT_METHOD", "file://" + path}}, 1);
  for (int attempt = 0; attempt < 6000 && !std::filesystem::exists(path); ++attempt) usleep(10'000);
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  for (const std::uint16_t port : listening_ports(job[0].pid())) {
    Process& stranger = job.start(
        1, {{"TUTTI_INIT_METHOD", "tcp://127.0.0.1:" + std::to_string(port)}, {"TUTTI_INIT_TIMEOUT", "5s"}});
    EXPECT_EQ(stranger.wait(), 1) << stranger.report();
    job.ranks.pop_back();
  }
  EXPECT_THAT(job[0].err(), HasSubstr("has no token"));
  job.start(1);
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

TEST(Authentication, AFileSessionMayAskForTheUsersTokenAsWell) {
  const ScratchFolder folder;
  Job job(2, {{"TUTTI_INIT_METHOD", "file://" + (folder / "session")}, {"TUTTI_TOKEN", token}}, 1);
  Process& stranger = job.start(1, {{"TUTTI_TOKEN", std::nullopt}});
  EXPECT_EQ(stranger.wait(), 1) << stranger.report();
  EXPECT_THAT(stranger.err(), HasSubstr("unauthenticated"));
  job.ranks.pop_back();
  job.start(1);
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

int times(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Runs a job of two ranks. Returns how often each rank warns that other processes can reach its
// port. If `reachable` is true, the ranks listen on all interfaces.
int open_port_warnings(const Process::Environment& variables, bool reachable = true) {
  Job job(2, variables, 0);
  if (reachable) {
    job.environment["TUTTI_BIND_ADDRESS"] = "0.0.0.0";
    job.environment["TUTTI_ADVERTISE_ADDRESS"] = "127.0.0.1";
  }
  for (int rank = 0; rank < 2; ++rank) job.start(rank);
  EXPECT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
  const std::string text = "without a token, so that any process that reaches the port may connect";
  EXPECT_EQ(times(job[0].err(), text), times(job[1].err(), text));
  return times(job[0].err(), text);
}

TEST(Authentication, OpenPortsAreWarnedOfOnce) {
  const ScratchFolder folder;
  EXPECT_EQ(open_port_warnings({}), 1);
  EXPECT_EQ(open_port_warnings({}, false), 0);
  EXPECT_EQ(open_port_warnings({{"TUTTI_TOKEN", token}}), 0);
  EXPECT_EQ(open_port_warnings({{"TUTTI_INIT_METHOD", "file://" + (folder / "session")}}), 0);
  Process launched({std::string(TUTTI_BIN_DIR) + "/tutti", "run", "-n", "2",
                    std::string(TUTTI_BIN_DIR) + "/tutti", "bench", "barrier"},
                   {{"TUTTI_BIND_ADDRESS", "0.0.0.0"}, {"TUTTI_ADVERTISE_ADDRESS", "127.0.0.1"}});
  EXPECT_EQ(launched.wait(), 0) << launched.report();
  EXPECT_THAT(launched.err(), Not(HasSubstr("without a token")));
  Process info({std::string(TUTTI_BIN_DIR) + "/tutti", "info"}, {{"TUTTI_BIND_ADDRESS", "0.0.0.0"}});
  EXPECT_EQ(info.wait(), 0) << info.report();
  EXPECT_THAT(info.out() + info.err(), Not(HasSubstr("without a token")));
}

// The rank would log a warning if it listened on another interface.
TEST(Authentication, AWorldOfOneListensOnLoopbackOnly) {
  Job alone(1, {{"TUTTI_INIT_METHOD", std::nullopt}});
  ASSERT_TRUE(alone.are_ready()) << alone[0].report();
  alone.expect_good_end();
  EXPECT_THAT(alone[0].err(), Not(HasSubstr("without a token")));
}

TEST(Authentication, WeakTokensAreWarnedOfOnce) {
  const ScratchFolder folder;
  const auto err_of = [&](const Process::Environment& variables) {
    Job job(1, variables);
    EXPECT_TRUE(job.are_ready()) << job[0].report();
    job.expect_good_end();
    return job[0].err();
  };
  EXPECT_EQ(times(err_of({{"TUTTI_TOKEN", "fifteen bytes.."}}), "the token has fewer than 16 bytes"), 1);
  EXPECT_THAT(err_of({{"TUTTI_TOKEN", token}}), Not(HasSubstr("warn")));
  std::ofstream(folder / "token") << token << "\n";
  for (const mode_t mode : {0644, 0640}) {
    ASSERT_EQ(chmod((folder / "token").c_str(), mode), 0);
    EXPECT_EQ(times(err_of({{"TUTTI_TOKEN_FILE", folder / "token"}}), "open to users other than its owner"),
              1);
  }
  ASSERT_EQ(chmod((folder / "token").c_str(), 0600), 0);
  EXPECT_THAT(err_of({{"TUTTI_TOKEN_FILE", folder / "token"}}), Not(HasSubstr("warn")));
}

TEST(Authentication, AnEmptyTokenIsAnErrorAndNotOpen) {
  const ScratchFolder folder;
  std::ofstream(folder / "blank") << " \n";
  const std::string run = std::string(TUTTI_BIN_DIR) + "/tutti";
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"TUTTI_TOKEN", ""}, {"TUTTI_TOKEN_FILE", ""}, {"TUTTI_TOKEN_FILE", folder / "blank"}}) {
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{run, "bench", "barrier", "-n", "2"},
                                               {run, "run", "-n", "2", "true"},
                                               {run, "store", "--port", "0"}}) {
      Process process(command, {{name, value}});
      EXPECT_EQ(process.wait(), 1) << process.report();
      EXPECT_THAT(process.err(), AllOf(HasSubstr(name), HasSubstr("empty")));
    }
  }
}

// Returns the /proc folders of the processes that have `needle` on their command line.
std::string command_lines(const std::string& needle) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    if (text.find(needle) != std::string::npos) found += entry.path().string() + " ";
  }
  return found;
}

TEST(Authentication, TheLauncherMakesATokenThatNobodySees) {
  const ScratchFolder folder;
  const std::string program = std::string(TUTTI_BIN_DIR) + "/tests/busy_rank";
  const std::string script =
      "echo $TUTTI_TOKEN >> " + (folder / "tokens") + "; exec " + program + " " + (folder / "stop");
  Process launcher({std::string(TUTTI_BIN_DIR) + "/tutti", "run", "-n", "2", "--", "sh", "-c", script},
                   {{"TUTTI_LOG_LEVEL", "trace"}, {"TUTTI_TRANSPORTS", "shm,tcp"}});
  ASSERT_TRUE(launcher.wait_for_output("ready")) << launcher.report();
  std::ifstream file(folder / "tokens");
  std::string first, second;
  file >> first >> second;
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.size(), 64u) << first;
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos) << first;
  EXPECT_EQ(command_lines(first), "");
  std::ofstream(folder / "stop") << "now";
  EXPECT_EQ(launcher.wait(), 0) << launcher.report();
  EXPECT_THAT(launcher.out() + launcher.err(), Not(HasSubstr(first)));
}

}  // namespace
}  // namespace tutti::test
