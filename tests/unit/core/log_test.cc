#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tutti/log.h>

namespace tutti {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LogTest : public ::testing::Test {
 protected:
  LogTest() { file_ = ::testing::TempDir() + "tutti_log_" + std::to_string(getpid()); }
  ~LogTest() override {
    EXPECT_TRUE(log::configure(log::Level::warn).ok());
    std::remove(file_.c_str());
  }

  std::vector<std::string> lines() const {
    std::ifstream in(file_);
    std::vector<std::string> result;
    for (std::string line; std::getline(in, line);) result.push_back(line);
    return result;
  }

  std::string file_;
};

TEST_F(LogTest, LinesCarryTimeLevelHostProcessAndRank) {
  ASSERT_TRUE(log::configure(log::Level::info, file_).ok());
  log::info("before ", 1, " rank");
  log::set_rank(3, 8);
  log::error("lost {} %s: ", Status(Code::peer_lost, "gone", 1), ' ', true, ' ', std::string("text"));
  const auto written = lines();
  ASSERT_EQ(written.size(), 2u);
  const std::string time = "[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+\\.[0-9]+ ";
  const std::string process = "[^ ]+:" + std::to_string(getpid()) + "\\] ";
  EXPECT_THAT(written[0], MatchesRegex(time + "info \\[tutti " + process + "before 1 rank"));
  EXPECT_THAT(written[1], MatchesRegex(time + "error \\[tutti 3/8 " + process + ".*"));
  EXPECT_THAT(written[1], HasSubstr("] lost {} %s: peer_lost: gone true text"));
}

TEST_F(LogTest, ALineStaysOneAndControlsNoTerminal) {
  ASSERT_TRUE(log::configure(log::Level::info, file_).ok());
  log::info("from host ", std::string("\x1b]0;b\x07"),
            "\n2025-01-31T12:00:00 error [tutti 0/2 b:1] all is lost");
  const auto written = lines();
  ASSERT_EQ(written.size(), 1u);
  EXPECT_THAT(written[0], HasSubstr("from host \\x1b]0;b\\x07\\n2025-01-31T12:00:00 error"));
}

TEST_F(LogTest, OnlyUpToTheLevel) {
  ASSERT_TRUE(log::configure(log::Level::warn, file_).ok());
  EXPECT_TRUE(log::enabled(log::Level::error));
  EXPECT_TRUE(log::enabled(log::Level::warn));
  EXPECT_FALSE(log::enabled(log::Level::info));
  log::info("not this");
  log::trace("nor this");
  log::warn("this");
  EXPECT_EQ(lines().size(), 1u);
  ASSERT_TRUE(log::configure(log::Level::off, file_).ok());
  log::error("silence");
  EXPECT_EQ(lines().size(), 1u);
}

TEST_F(LogTest, AFileThatCannotBeOpenedChangesNothing) {
  ASSERT_TRUE(log::configure(log::Level::warn, file_).ok());
  const Status status = log::configure(log::Level::trace, "/proc/no/such/place");
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), HasSubstr("/proc/no/such/place"));
  EXPECT_FALSE(log::enabled(log::Level::info));
  log::warn("still here");
  EXPECT_EQ(lines().size(), 1u);
}

TEST_F(LogTest, APipeThatNobodyReadsIsAnErrorAndNoWait) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const Status status = log::configure(log::Level::warn, file_);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), HasSubstr("a pipe without a reader"));
}

TEST_F(LogTest, LinksAndPipesOfOwnAreMeant) {
  const std::string link = file_ + ".link", pipe = file_ + ".pipe";
  ASSERT_EQ(symlink(file_.c_str(), link.c_str()), 0);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_TRUE(log::configure(log::Level::warn, link).ok());
  log::warn("by a link");
  EXPECT_EQ(lines().size(), 1u);
  EXPECT_TRUE(log::configure(log::Level::warn, pipe).ok());
  log::warn("by a pipe");
  char text[256] = {};
  EXPECT_GT(read(reader, text, sizeof text - 1), 0);
  EXPECT_THAT(text, HasSubstr("by a pipe"));
  EXPECT_TRUE(log::configure(log::Level::warn, "/dev/null").ok());
  close(reader);
  unlink(link.c_str());
  unlink(pipe.c_str());
}

TEST_F(LogTest, NothingGoesWhereOthersLead) {
  const std::string victim = file_ + ".victim";
  std::ofstream(victim) << "weeks of work\n";
  const auto refused = [&] { return log::configure(log::Level::warn, file_).message(); };
  ASSERT_EQ(link(victim.c_str(), file_.c_str()), 0);
  EXPECT_THAT(refused(), HasSubstr("it is a hard link"));
  unlink(file_.c_str());
  if (geteuid() == 0) {  // only root can give files to another user
    ASSERT_EQ(symlink(victim.c_str(), file_.c_str()), 0);
    ASSERT_EQ(lchown(file_.c_str(), 4711, 4711), 0);
    EXPECT_THAT(refused(), HasSubstr("it is a symbolic link of another user"));
    unlink(file_.c_str());
    ASSERT_EQ(mkfifo(file_.c_str(), 0666), 0);
    ASSERT_EQ(chown(file_.c_str(), 4711, 4711), 0);
    const int reader = open(file_.c_str(), O_RDONLY | O_NONBLOCK);
    EXPECT_THAT(refused(), HasSubstr("it belongs to another user"));
    close(reader);
  }
  std::string text;
  std::getline(std::ifstream(victim), text, '\0');
  EXPECT_EQ(text, "weeks of work\n");
  unlink(victim.c_str());
}

TEST_F(LogTest, WholeLinesFromManyThreads) {
  ASSERT_TRUE(log::configure(log::Level::info, file_).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) log::info("thread ", t, " line ", i, " end");
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(log::configure(log::Level::info, file_).ok());  // replaces the file while the threads write
  }
  for (std::thread& thread : threads) thread.join();
  const auto written = lines();
  EXPECT_EQ(written.size(), 800u);
  for (const std::string& line : written) EXPECT_THAT(line, MatchesRegex(".*thread [0-9] line [0-9]+ end"));
}

TEST(Log, LevelsHaveNames) {
  for (const auto level : {log::Level::off, log::Level::error, log::Level::warn, log::Level::info,
                           log::Level::debug, log::Level::trace}) {
    EXPECT_EQ(log::parse_level(log::to_string(level)), level);
  }
  EXPECT_FALSE(log::parse_level("loud"));
}

}  // namespace
}  // namespace tutti
