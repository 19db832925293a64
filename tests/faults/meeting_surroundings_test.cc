// Ranks that cannot meet for lack of what a host usually has say what it is.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/faults/fault_world.h"
#include "tests/support/process.h"

namespace tutti::test {
namespace {

using Clock = std::chrono::steady_clock;

const std::string program = std::string(TUTTI_BIN_DIR) + "/tests/fault_rank";

Process rank_of_two(int rank, const std::vector<std::string>& command, const std::string& limit = "8s") {
  return Process(command, {{"TUTTI_RANK", std::to_string(rank)},
                           {"TUTTI_WORLD_SIZE", "2"},
                           {"TUTTI_INIT_TIMEOUT", limit},
                           {"TUTTI_INIT_METHOD", "tcp://127.0.0.1:" + std::to_string(unused_port())}});
}

// Enough for a store to listen, but not for anybody to come in.
TEST(MeetingWithFewDescriptors, SaysSo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need descriptors of their own";
#endif
  for (const std::string count : {"8", "16", "24"}) {
    Process rank = rank_of_two(0, {"sh", "-c", "ulimit -n " + count + " && exec " + program + " idle"});
    EXPECT_EQ(rank.wait(), 1) << rank.report();
    if (count == "24" && rank.out().find("rank 1 has not arrived") != std::string::npos) continue;
    EXPECT_NE(rank.out().find("used up the " + count + " file descriptors"), std::string::npos)
        << rank.report();
    EXPECT_NE(rank.out().find("ulimit -n"), std::string::npos) << rank.report();
  }
}

TEST(MeetingWithoutLoopback, SaysSo) {
  Process probe({"unshare", "-n", "true"});
  if (probe.wait() != 0) GTEST_SKIP() << "no network namespace can be made here: " << probe.err();
  const std::string launcher = std::string(TUTTI_BIN_DIR) + "/tutti";
  const Clock::time_point begin = Clock::now();
  for (const int number : {0, 1}) {
    Process rank = rank_of_two(number, {"unshare", "-n", program, "idle"}, "200s");
    EXPECT_EQ(rank.wait(), 1) << rank.report();
    EXPECT_NE(rank.out().find("loopback interface is down or has no address 127.0.0.1"), std::string::npos)
        << rank.report();
  }
  Process job({"unshare", "-n", launcher, "run", "-n", "2", "--", program, "idle"},
              {{"TUTTI_INIT_TIMEOUT", "200s"}});
  EXPECT_EQ(job.wait(), 1) << job.report();
  EXPECT_NE(job.out().find("loopback interface is down or has no address 127.0.0.1"), std::string::npos)
      << job.report();
  // Nobody has waited for what cannot come.
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(100));
}

// The ranks meet, and then nothing leads from one to the other: what they do by themselves in `init` has no
// other name than that.
TEST(MeetingWithoutAWay, SpeaksOfInit) {
  FaultWorld world(
      2, {"idle"},
      {.transport = "tcp",
       .more = {{"TUTTI_BIND_ADDRESS", "127.0.0.1"}, {"TUTTI_ADVERTISE_ADDRESS", "127.0.0.99"}}});
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto failure = world.failure(rank);
    ASSERT_TRUE(failure) << world.report();
    EXPECT_EQ(failure->code, "peer_lost") << failure->message;
    const std::string self = "rank " + std::to_string(rank) + " (host ";
    EXPECT_TRUE(failure->message.starts_with(self)) << failure->message;
    EXPECT_NE(failure->message.find(": init() "), std::string::npos) << failure->message;
  }
}

}  // namespace
}  // namespace tutti::test
