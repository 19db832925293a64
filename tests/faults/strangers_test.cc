// Tests that strangers (processes outside the job) neither disturb the job nor make its memory grow.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "rendezvous/store/tcp/wire.h"
#include "tests/faults/job.h"
#include "tests/faults/own_network.h"

namespace tutti::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

// Raises the limit on descriptors as far as this process may.
void allow_many_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<std::string> greetings() {
  std::vector<std::string> all = {
      "",
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(506, 'r'),  // a TLS hello
      "SSH-2.0-OpenSSH_9.2\r\n",
      std::string("\x00\x00\x00\x80", 4) + std::string(60, 'x'),  // a length of 2 GiB
      std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8),
      std::string("TUTTIST\n\x01\0\0\0\0\0\0\0\x00\x00\x00\x80", 20),  // the same length, to a store
      "TUTTIST\n",
      "tutti?\r\n",
      "\xd7tutti\r\n",
      std::string(100'000, 'A')};
  std::mt19937 random(7);
  for (int i = 0; i < 30; ++i) {
    std::string bytes(1 + random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    all.push_back(bytes);
  }
  return all;
}

// Opens a connection for each greeting. Every fifth connection is reset, as a port scan would do.
// Two fifths of the connections stay open.
std::vector<LoopbackSocket> bother(std::uint16_t port) {
  std::vector<LoopbackSocket> kept;
  int number = 0;
  for (const std::string& greeting : greetings()) {
    LoopbackSocket stranger(port);
    if (!stranger.is_connected()) continue;
    stranger.say(greeting);
    if (++number % 5 == 0) {
      stranger.reset();
    } else if (number % 2 == 0) {
      kept.push_back(std::move(stranger));
    }
  }
  return kept;
}

class Strangers : public ::testing::TestWithParam<const char*> {
 protected:
  Process::Environment environment() const {
    Process::Environment variables = {{"TUTTI_LOG_LEVEL", "error"}};
    if (*GetParam() != 0) variables["TUTTI_TOKEN"] = GetParam();
    return variables;
  }
};

TEST_P(Strangers, AtThePortsOfARunningJob) {
  Job job(3, environment());
  ASSERT_TRUE(job.are_ready()) << job[0].report();
  std::vector<std::size_t> before;
  for (const auto& rank : job.ranks) before.push_back(memory_of(rank->pid()));
  std::vector<LoopbackSocket> kept;
  for (int rank = 0; rank < 3; ++rank) {
    const auto ports = listening_ports(job[rank].pid());
    EXPECT_FALSE(ports.empty());
    for (const std::uint16_t port : ports) {
      for (LoopbackSocket& each : bother(port)) kept.push_back(std::move(each));
    }
  }
  EXPECT_GT(kept.size(), 30u);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_LT(memory_of(job.ranks[rank]->pid()), before[rank] + 8 * mebibyte);
  }
  job.expect_good_end();
}

// The strangers have been refused, but do not stop sending.
TEST_P(Strangers, WhoTalkOnAfterTheyHaveBeenTurnedAway) {
  Job job(2, environment());
  ASSERT_TRUE(job.are_ready()) << job[0].report();
  const std::size_t before = memory_of(job[0].pid());
  std::vector<LoopbackSocket> strangers;
  for (const std::uint16_t port : listening_ports(job[0].pid())) {
    for (const std::string magic : {"tutti?\r\n", "tuttic?\n"}) {
      for (int i = 0; i < 4; ++i) {
        strangers.emplace_back(port);
        strangers.back().say(magic + std::string(40, 'x'));
      }
    }
  }
  const std::string chatter(mebibyte, 'x');
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  std::size_t most = 0;
  while (std::chrono::steady_clock::now() < end) {
    for (LoopbackSocket& stranger : strangers) stranger.say(chatter);
    most = std::max(most, memory_of(job[0].pid()));
  }
  std::printf("%zu KiB more\n", (most - std::min(before, most)) / 1024);
  EXPECT_LT(most, before + 8 * mebibyte);
  job.expect_good_end();
}

TEST_P(Strangers, TenThousandConnections) {
  allow_many_descriptors();
  Job job(2, environment());
  ASSERT_TRUE(job.are_ready()) << job[0].report();
  const pid_t pid = job[0].pid();
  const std::size_t before = memory_of(pid);
  const std::vector<std::uint16_t> ports = listening_ports(pid);
  ASSERT_FALSE(ports.empty());
  std::vector<LoopbackSocket> strangers;
  int connected = 0;
  for (std::size_t i = 0; i < 10'000; ++i) {
    LoopbackSocket stranger(ports[i % ports.size()]);
    connected += stranger.is_connected();
    if (stranger.is_connected()) stranger.say("\xd7tutti\r");
    strangers.push_back(std::move(stranger));
  }
  const std::size_t grown = memory_of(pid) - std::min(before, memory_of(pid));
  const std::size_t descriptors = open_descriptors(pid);
  std::printf("%d connections: %zu KiB more, %zu descriptors\n", connected, grown / 1024, descriptors);
  EXPECT_EQ(connected, 10'000);
  EXPECT_LT(grown, 8 * mebibyte);
  EXPECT_LT(descriptors, ports.size() * 256u + 64u);
  job.expect_good_end();
}

TEST_P(Strangers, AtTheStoreBeforeTheRanksHaveMet) {
  allow_many_descriptors();
  Job job(2, environment(), 1);
  std::vector<LoopbackSocket> strangers;
  while (strangers.empty()) {
    LoopbackSocket first(job.port);
    if (first.is_connected()) strangers.push_back(std::move(first));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(job[0].wait(std::chrono::milliseconds(0)), std::nullopt) << job[0].report();
  }
  const std::size_t before = memory_of(job[0].pid());
  for (int round = 0; round < 100; ++round) {
    for (LoopbackSocket& each : bother(job.port)) strangers.push_back(std::move(each));
  }
  const std::size_t now = memory_of(job[0].pid());
  std::printf("%zu connections held: %zu KiB more\n", strangers.size(), (now - std::min(before, now)) / 1024);
  EXPECT_LT(now, before + 8 * mebibyte);
  job.start(1);
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

// One stranger at each port is enough to break a Gloo job.
TEST_P(Strangers, OneAtEachPortWhileTheRanksConnect) {
  Job job(2, environment(), 1);
  // Rank 0 is still alone. Strangers connect to all of its ports before rank 1 starts.
  std::vector<LoopbackSocket> kept;
  for (int attempt = 0; attempt < 6000 && kept.empty(); ++attempt) {
    for (const std::uint16_t port : listening_ports(job[0].pid())) kept.emplace_back(port);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  job.start(1);
  for (const std::uint16_t port : listening_ports(job[1].pid())) kept.emplace_back(port);
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

// The flood connects to every port of ranks 0 and 1 as fast as possible. It begins before the ranks
// meet, and ends when they work.
TEST_P(Strangers, AFloodWhileTheRanksMeet) {
  allow_many_descriptors();
  Job job(3, environment(), 1);
  const pid_t first = job[0].pid();
  std::atomic<pid_t> second = first;
  std::atomic<bool> over = false;
  std::atomic<std::size_t> count = 0;
  std::thread flood([&] {
    std::deque<LoopbackSocket> held;
    while (!over) {
      std::vector<std::uint16_t> ports = listening_ports(first);
      for (const std::uint16_t port : listening_ports(second)) ports.push_back(port);
      for (std::size_t i = 0; i < 20 * ports.size() && !over; ++i, ++count) {
        held.emplace_back(ports[i % ports.size()]);
        if (held.size() > 2000) held.pop_front();
      }
    }
  });
  for (int i = 0; i < 3000 && count < 1000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::size_t before = count;
  second = job.start(1).pid();
  job.start(2);
  const bool ready = job.are_ready();
  over = true;
  flood.join();
  EXPECT_GE(before, 1000u);
  ASSERT_TRUE(ready) << job[0].report() << job[1].report() << job[2].report();
  std::printf("%zu connections before the last ranks came, %zu until all worked\n", before, count - before);
  job.expect_good_end();
}

INSTANTIATE_TEST_SUITE_P(Open, Strangers, ::testing::Values(""));
INSTANTIATE_TEST_SUITE_P(Token, Strangers, ::testing::Values("a token for this test"));

TEST(Descriptors, RunOutAndComeBack) {
  // Rank 0 has so few descriptors that strangers can use them all up.
  Job job(2, {{"TUTTI_LOG_LEVEL", "error"}}, 0);
  const std::vector<std::string> words = {
      "sh", "-c",
      "ulimit -n 48; exec " + std::string(TUTTI_BIN_DIR) + "/tests/busy_rank " + (job.folder / "stop")};
  Process::Environment first = job.environment;
  first["TUTTI_RANK"] = "0";
  job.ranks.push_back(std::make_unique<Process>(words, first));
  std::vector<LoopbackSocket> strangers;
  for (int attempt = 0; attempt < 3000 && strangers.size() < 100; ++attempt) {
    LoopbackSocket stranger(job.port);
    if (stranger.is_connected()) {
      strangers.push_back(std::move(stranger));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ASSERT_EQ(strangers.size(), 100u) << job[0].report();
  job.start(1);
  strangers.clear();
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

// Connects far more strangers to a store than it has room for. Expects that the ranks still meet.
void expect_ranks_to_meet_among(const std::string& what_strangers_say) {
  const std::uint16_t port = unused_port();
  const std::string tutti = std::string(TUTTI_BIN_DIR) + "/tutti";
  Process store({"sh", "-c", "ulimit -n 64; exec " + tutti + " store --port " + std::to_string(port)});
  ASSERT_TRUE(store.wait_for_output("serving at")) << store.report();
  std::vector<LoopbackSocket> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.emplace_back(port);
    strangers.back().say(what_strangers_say);
    // The pause gives the server time to answer before other connections displace the stranger.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  Job job(3, {{"TUTTI_INIT_METHOD", std::nullopt}, {"TUTTI_STORE", "127.0.0.1:" + std::to_string(port)}});
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report() << job[2].report() << store.report();
  job.expect_good_end();
}

std::string store_hello() {
  const store_wire::ClientHello hello;
  return std::string(reinterpret_cast<const char*>(&hello), sizeof hello);
}

TEST(Descriptors, OfAStoreAreNotForHellosThatNothingFollows) { expect_ranks_to_meet_among(store_hello()); }

TEST(Descriptors, OfAStoreAreNotForClientsThatFallSilent) {
  const std::string is_there_k("\x05\0\0\0\x08\x07\x12\x01k", 9);
  expect_ranks_to_meet_among(store_hello() + is_there_k);
}

TEST(Descriptors, OfAStoreAreNotForClientsThatWaitForWhatNeverComes) {
  const std::string wait_for_k("\x09\0\0\0\x08\x03\x12\x01k\x30\xff\xff\x7f", 13);  // 35 minutes
  expect_ranks_to_meet_among(store_hello() + wait_for_k);
}

// While all local ports are in use, ranks wait for a free port.
TEST(Ports, RunOutAndComeBack) {
  std::string problem;
  std::thread([&] {
    problem = enter_own_network("40000 40015");
    if (!problem.empty()) return;
    Job job(2, {{"TUTTI_PORT_RANGE", "20000-20100"}, {"TUTTI_LOG_LEVEL", "error"}}, 0);
    job.start(0);
    std::vector<LoopbackSocket> strangers;
    for (int attempt = 0; attempt < 3000 && strangers.size() < 12; ++attempt) {
      LoopbackSocket stranger(job.port);
      if (stranger.is_connected()) strangers.push_back(std::move(stranger));
      if (strangers.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    while (strangers.size() < 100) {
      LoopbackSocket stranger(job.port);
      if (!stranger.is_connected()) break;
      strangers.push_back(std::move(stranger));
    }
    EXPECT_LT(strangers.size(), 17u);
    job.start(1);
    EXPECT_FALSE(job[1].wait_for_output("ready", std::chrono::seconds(1)));
    for (LoopbackSocket& stranger : strangers) stranger.reset();
    ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
    job.expect_good_end();
  }).join();
  if (!problem.empty()) GTEST_SKIP() << problem;
}

TEST(Contradictions, ARankThatIsThereTwiceIsRefusedNamingBoth) {
  Job job(3, {}, 2);
  Process& twin = job.start(1);
  for (const auto& rank : job.ranks) {
    EXPECT_EQ(rank->wait(), 1) << rank->report();
    EXPECT_THAT(rank->err(), HasSubstr("rank 1 is taken twice"));
    EXPECT_THAT(rank->err(), HasSubstr("pid " + std::to_string(twin.pid())));
    EXPECT_THAT(rank->err(), HasSubstr("pid " + std::to_string(job[1].pid())));
  }
}

TEST(Contradictions, DifferentWorldSizesAreToldOnBothSides) {
  Job job(2, {}, 1);
  job.start(1, {{"TUTTI_WORLD_SIZE", "3"}});
  for (const auto& rank : job.ranks) {
    EXPECT_EQ(rank->wait(), 1) << rank->report();
    EXPECT_THAT(rank->err(), AnyOf(HasSubstr("world size 2 vs 3"), HasSubstr("world size 3 vs 2")));
  }
}

// Ranks may have different limits for messages. Each pair of ranks uses the smaller of its two limits.
TEST(Contradictions, BetweenLimitsOfMessagesAreNone) {
  for (const char* transport : {"tcp", "shm"}) {
    Job job(3, {{"TUTTI_TRANSPORTS", transport}, {"TUTTI_SHM_WINDOW", "0"}}, 1);
    job.start(1, {{"TUTTI_EAGER_LIMIT", "100"}, {"TUTTI_EAGER_CREDIT", "2K"}});
    job.start(2, {{"TUTTI_FRAGMENT", "4K"}, {"TUTTI_EAGER_CREDIT", "4K"}});
    ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report() << job[2].report();
    job.expect_good_end();
  }
}

}  // namespace
}  // namespace tutti::test
