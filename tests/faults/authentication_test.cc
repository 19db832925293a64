// Who has no token, or another, stays outside; who belongs to the job does not notice.
#include <filesystem>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "job.h"

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
  Job job(2, {{"TUTTI_INIT_TIMEOUT", "6s"}}, 1);
  Process& guarded = job.start(1, {{"TUTTI_TOKEN", token}});
  EXPECT_EQ(guarded.wait(), 1) << guarded.report();
  EXPECT_THAT(guarded.err(), AllOf(HasSubstr("unauthenticated"), HasSubstr("has no token")));
  EXPECT_EQ(job[0].wait(), 1) << job[0].report();
  EXPECT_THAT(job[0].err(), AllOf(HasSubstr("rank 1 has not arrived"), HasSubstr("turned away meanwhile")));
}

TEST(Authentication, TheTokenMayComeFromAFile) {
  const TemporaryFolder folder;
  std::ofstream(folder / "token") << token << "\n";
  Job job(2, {{"TUTTI_TOKEN_FILE", folder / "token"}}, 1);
  job.start(1, {{"TUTTI_TOKEN_FILE", std::nullopt}, {"TUTTI_TOKEN", token}});
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

TEST(Authentication, AFileSessionIsClosedToWhoCannotReadTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "session";
  Job job(2, {{"TUTTI_INIT_METHOD", "file://" + path}}, 1);
  for (int attempt = 0; attempt < 1000 && !std::filesystem::exists(path); ++attempt) usleep(10'000);
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  for (const std::uint16_t port : listening_ports(job[0].pid())) {
    Process& stranger = job.start(
        1, {{"TUTTI_INIT_METHOD", "tcp://127.0.0.1:" + std::to_string(port)}, {"TUTTI_INIT_TIMEOUT", "2s"}});
    EXPECT_EQ(stranger.wait(), 1) << stranger.report();
    job.ranks.pop_back();
  }
  EXPECT_THAT(job[0].err(), HasSubstr("has no token"));
  job.start(1);
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

TEST(Authentication, AFileSessionMayAskForTheUsersTokenAsWell) {
  const TemporaryFolder folder;
  Job job(2, {{"TUTTI_INIT_METHOD", "file://" + (folder / "session")}, {"TUTTI_TOKEN", token}}, 1);
  Process& stranger = job.start(1, {{"TUTTI_TOKEN", std::nullopt}});
  EXPECT_EQ(stranger.wait(), 1) << stranger.report();
  EXPECT_THAT(stranger.err(), HasSubstr("unauthenticated"));
  job.ranks.pop_back();
  job.start(1);
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

// Of a process and what is below it.
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
  const TemporaryFolder folder;
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
