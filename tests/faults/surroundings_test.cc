// Tests ranks under difficult conditions, such as signals, forks, few descriptors, and a clock that
// jumps.
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;

// `Ranks` runs ranks (the program adversity_rank).
class Ranks {
 public:
  Ranks(int size, std::vector<std::string> words, Process::Environment variables) : size_(size) {
    words.insert(words.begin(), std::string(TUTTI_BIN_DIR) + "/tests/adversity_rank");
    words_ = std::move(words);
    variables.try_emplace("TUTTI_INIT_METHOD", "tcp://127.0.0.1:" + std::to_string(unused_port()));
    variables_ = std::move(variables);
  }
  void start(int rank) {
    Process::Environment its = variables_;
    its["TUTTI_RANK"] = std::to_string(rank);
    its["TUTTI_WORLD_SIZE"] = std::to_string(size_);
    ranks_.emplace_back(words_, its);
  }
  void start_all() {
    for (int rank = 0; rank < size_; ++rank) start(rank);
  }
  void expect_output(const std::string& text) {
    for (Process& rank : ranks_) ASSERT_TRUE(rank.wait_for_output(text)) << rank.report();
  }
  void expect_good_end() {
    for (Process& rank : ranks_) {
      EXPECT_EQ(rank.wait(), 0) << rank.report();
      EXPECT_THAT(rank.out(), HasSubstr("well\n")) << rank.report();
    }
  }
  std::deque<Process>& all() { return ranks_; }

 private:
  int size_;
  std::vector<std::string> words_;
  Process::Environment variables_;
  std::deque<Process> ranks_;
};

class Interrupted : public testing::TestWithParam<std::string> {};

// An alarm interrupts each rank a thousand times a second, so any system call of the program's own threads
// may end with EINTR.
TEST_P(Interrupted, ByAlarmsAllTheTime) {
  const bool encrypted = GetParam() == "encrypted";
  Process::Environment variables = {{"TUTTI_TRANSPORTS", encrypted ? "tcp" : GetParam()}};
  if (encrypted) variables.insert({{"TUTTI_TOKEN", "of this test"}, {"TUTTI_TLS", "1"}});
  Ranks ranks(3, {"alarms", "1"}, variables);
  // Ranks 1 and 2 start long before rank 0, which serves the store.
  for (const int rank : {2, 1}) ranks.start(rank);
  EXPECT_FALSE(ranks.all().front().wait(std::chrono::milliseconds(300)));
  ranks.start(0);
  ranks.expect_good_end();
  for (Process& rank : ranks.all()) {
    const std::string out = rank.out();
    EXPECT_GT(std::stol(out.substr(out.find("alarms ") + 7)), 100) << out;
  }
}

INSTANTIATE_TEST_SUITE_P(, Interrupted, testing::Values("tcp", "shm", "encrypted"),
                         [](const auto& each) { return each.param; });

class Forked : public testing::TestWithParam<std::string> {};

TEST_P(Forked, ChildrenAreRefusedAndParentsGoOn) {
  Ranks ranks(2, {"fork"}, {{"TUTTI_TRANSPORTS", GetParam()}});
  ranks.start_all();
  ranks.expect_good_end();
}

// The children are like the workers of a data loader: they inherit the communicator, but never use
// it.
TEST_P(Forked, ChildrenOfABusyParentEndAndDisturbNobody) {
  Ranks ranks(2, {"workers"}, {{"TUTTI_TRANSPORTS", GetParam()}});
  ranks.start_all();
  ranks.expect_good_end();
}

INSTANTIATE_TEST_SUITE_P(, Forked, testing::Values("tcp", "shm"),
                         [](const auto& each) { return each.param; });

class Destroyed : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Destroyed, WithOperationsInFlight) {
  const auto& [how, transport] = GetParam();
  Ranks ranks(3, {"destroy", how}, {{"TUTTI_TRANSPORTS", transport}});
  ranks.start_all();
  ranks.expect_good_end();
}

INSTANTIATE_TEST_SUITE_P(
    , Destroyed, testing::Combine(testing::Values("main", "then", "abort"), testing::Values("tcp", "shm")),
    [](const auto& each) { return std::get<0>(each.param) + "_" + std::get<1>(each.param); });

// A rank runs out of descriptors. Either some rank reports the shortage, or another rank reports that this
// rank is lost. No rank hangs.
TEST(FewDescriptors, AreAClearError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need descriptors of their own";
#endif
  std::deque<Ranks> jobs;
  for (int count = 3; count <= 43; count += 4) {
    const Process::Environment variables = {{"TUTTI_INIT_TIMEOUT", "15s"}, {"TUTTI_TIMEOUT", "15s"}};
    jobs.emplace_back(2, std::vector<std::string>{"few", std::to_string(count)}, variables).start_all();
  }
  int refused = 0;
  for (Ranks& job : jobs) {
    bool told = false, failed = false;
    std::string report;
    for (Process& rank : job.all()) {
      const auto status = rank.wait();
      ASSERT_TRUE(status == 0 || status == 1) << rank.report();
      failed |= status == 1;
      for (const char* words : {"Too many open files: this process", "no descriptor"})
        told |= rank.err().find(words) != std::string::npos;
      report += rank.report();
    }
    EXPECT_EQ(report.find(": :"), std::string::npos) << report;
    // A rank may have enough descriptors to start, but too few for all connections. Other ranks may
    // then be the first to report, and say that this rank is lost.
    EXPECT_TRUE(told || !failed || report.find("peer_lost: ") != std::string::npos) << report;
    refused += told ? 1 : 0;
  }
  EXPECT_GT(refused, 2);
  jobs.back().expect_good_end();
}

TEST(UnwritableFolder, IsNamedAtOnce) {
  for (const std::string path : {"/proc/self/session", "/nonexistent/session"}) {
    Ranks ranks(2, {"alarms", "0"}, {{"TUTTI_INIT_METHOD", "file://" + path}, {"TUTTI_INIT_TIMEOUT", "60s"}});
    ranks.start(0);
    Process& rank = ranks.all().front();
    EXPECT_EQ(rank.wait(), 1) << rank.report();
    EXPECT_THAT(rank.err(), HasSubstr(path)) << rank.report();
    EXPECT_THAT(rank.err(), testing::AnyOf(HasSubstr("not writable"), HasSubstr("does not exist")));
  }
}

std::string faketime_library() {
  for (const std::string folder : {"/usr/lib", "/usr/lib64", "/usr/local/lib"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const auto library = entry.path() / "faketime/libfaketimeMT.so.1";
      if (std::filesystem::exists(library, error)) return library;
    }
  }
  return {};
}

// The clock jumps forward and back by hours while the ranks meet and compute. Their time limits are
// far shorter, and must not expire.
TEST(WallClock, MayJump) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's runtime must be loaded before libfaketime";
#endif
  const std::string library = faketime_library();
  if (library.empty()) GTEST_SKIP() << "libfaketime is not installed";
  for (const std::string transport : {"tcp", "shm"}) {
    const ScratchFolder folder;
    const auto set_clock = [&](const std::string& offset) {
      std::ofstream(folder / "next") << offset << "\n";
      std::filesystem::rename(folder / "next", folder / "clock");
    };
    set_clock("+0");
    Ranks ranks(3, {"clock", folder / "stop"},
                {{"TUTTI_TRANSPORTS", transport},
                 {"TUTTI_HEARTBEAT", "10s"},
                 {"TUTTI_TIMEOUT", "60s"},
                 {"LD_PRELOAD", library},
                 {"FAKETIME_TIMESTAMP_FILE", folder / "clock"},
                 {"FAKETIME_NO_CACHE", "1"},
                 {"FAKETIME_DONT_FAKE_MONOTONIC", "1"},
                 {"DONT_FAKE_MONOTONIC", "1"}});
    ranks.start(0);
    ranks.start(1);
    EXPECT_FALSE(ranks.all().front().wait(std::chrono::milliseconds(200)));
    set_clock("+5h");
    EXPECT_FALSE(ranks.all().front().wait(std::chrono::milliseconds(200)));
    set_clock("-3h");
    ranks.start(2);
    ranks.expect_output("ready\n");
    int jumps = 0;
    for (const std::string offset : {"+100h", "-200h", "+1h"}) {
      set_clock(offset);
      // Each rank counts the jumps that it sees. Ranks 0 and 1 may count one jump more than rank 2,
      // since the clock jumped during their `init`, before rank 2 started.
      ++jumps;
      for (Process& rank : ranks.all())
        ASSERT_TRUE(rank.wait_for_output("jump " + std::to_string(jumps) + "\n")) << rank.report();
    }
    std::ofstream(folder / "stop") << "now";
    ranks.expect_good_end();
  }
}

}  // namespace
}  // namespace tutti::test
