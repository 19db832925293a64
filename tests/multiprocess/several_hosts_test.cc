// Tests ranks on several hosts, which are network namespaces joined by a bridge.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/network_hosts.h"
#include "tests/support/process.h"

namespace tutti::test {
namespace {

struct Traffic {
  // The number of bytes that the busiest host sends for each byte of the vector, with each kind of algorithm.
  double two_level = 0;
  double ring = 0;
};

// Runs the program host_ranks. `hosts[rank]` is the host of a rank.
Traffic run_on(const NetworkHosts& network, const std::vector<int>& hosts) {
  std::vector<std::unique_ptr<Process>> ranks;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const Process::Environment environment = {
        {"TUTTI_RANK", std::to_string(rank)},
        {"TUTTI_WORLD_SIZE", std::to_string(hosts.size())},
        {"TUTTI_INIT_METHOD", "tcp://" + network.address(hosts[0]) + ":29613"}};
    ranks.push_back(std::make_unique<Process>(
        network.on(hosts[rank], {std::string(TUTTI_BIN_DIR) + "/tests/host_ranks"}), environment));
  }
  Traffic most;
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->wait(std::chrono::minutes(10)), 0) << rank->report();
    unsigned long long bytes = 0, two_level = 0, ring = 0;
    const std::string out = rank->out();
    EXPECT_EQ(std::sscanf(out.c_str(), "of %llu bytes: two_level %llu ring %llu", &bytes, &two_level, &ring),
              3)
        << rank->report();
    if (bytes == 0) continue;
    most.two_level = std::max(most.two_level, static_cast<double>(two_level) / static_cast<double>(bytes));
    most.ring = std::max(most.ring, static_cast<double>(ring) / static_cast<double>(bytes));
  }
  std::printf("out of a host, for each byte: two_level %.3f, ring %.3f\n", most.two_level, most.ring);
  return most;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

TEST(SeveralHosts, TheLeastPossibleGoesOverTheWire) {
  const NetworkHosts network(3);
  if (!network.problem().empty()) GTEST_SKIP() << network.problem();
  // On H hosts, the busiest host must send at least 2 (H-1)/H bytes per byte of the vector. Headers,
  // acknowledgements and heartbeats add at most a tenth.
  const Traffic two = run_on(network, {0, 0, 1, 1});
  EXPECT_GT(two.two_level, 1.0);
  EXPECT_LT(two.two_level, 1.1);
  EXPECT_GT(two.ring, 1.4);
  const Traffic three = run_on(network, {0, 0, 1, 1, 2, 2});
  EXPECT_LT(three.two_level, 4.0 / 3 * 1.1);
}

// Returns how many bytes were sent through a network card. `table` is the content of /proc/net/dev.
double sent_through(const std::string& table, const std::string& card) {
  const std::size_t at = table.find(card + ":");
  std::array<double, 9> columns{};
  std::istringstream line(at == table.npos ? "" : table.substr(at + card.size() + 1));
  for (double& column : columns) line >> column;
  return columns[8];
}

TEST(SeveralHosts, SeveralCardsAreUsedSideBySide) {
  const NetworkHosts network(2, 2);
  if (!network.problem().empty()) GTEST_SKIP() << network.problem();
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    const Process::Environment environment = {
        {"TUTTI_RANK", std::to_string(rank)},
        {"TUTTI_WORLD_SIZE", "2"},
        {"TUTTI_SOCKET_IFNAME", "eth"},
        {"TUTTI_INIT_METHOD", "tcp://" + network.address(0) + ":29614"}};
    const std::string program =
        std::string(TUTTI_BIN_DIR) +
        "/tutti bench all_to_all --min-bytes 16M --max-bytes 16M --iterations 8 --batch 1";
    ranks.push_back(std::make_unique<Process>(
        network.on(rank, {"sh", "-c", program + " && cat /proc/self/net/dev"}), environment));
  }
  for (const auto& rank : ranks) {
    ASSERT_EQ(rank->wait(std::chrono::minutes(10)), 0) << rank->report();
    const std::string out = rank->out();
    const double first = sent_through(out, "eth0"), second = sent_through(out, "eth1");
    std::printf("sent through eth0 %.0f bytes, through eth1 %.0f\n", first, second);
    EXPECT_GT(second, 0.2 * first);
    EXPECT_LT(second, 1.2 * first);
  }
}

TEST(SeveralHosts, ARankThatAdvertisesLoopbackIsRefusedByAll) {
  const NetworkHosts network(2);
  if (!network.problem().empty()) GTEST_SKIP() << network.problem();
  for (const std::string variable : {"TUTTI_SOCKET_IFNAME", "TUTTI_ADVERTISE_ADDRESS"}) {
    std::vector<std::unique_ptr<Process>> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      Process::Environment environment = {{"TUTTI_RANK", std::to_string(rank)},
                                          {"TUTTI_WORLD_SIZE", "4"},
                                          {"TUTTI_INIT_METHOD", "tcp://" + network.address(0) + ":29615"}};
      if (rank == 3) environment[variable] = variable == "TUTTI_SOCKET_IFNAME" ? "lo" : "127.0.0.1";
      ranks.push_back(std::make_unique<Process>(
          network.on(rank / 2, {std::string(TUTTI_BIN_DIR) + "/tests/host_ranks"}), environment));
    }
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank->wait(), 1) << rank->report();
      for (const std::string& part :
           {"rank 3 (host " + host_name() + ", pid " + std::to_string(ranks[3]->pid()) +
                ") advertises the address 127.0.0.1",
            "rank 0 (host " + host_name() + ", pid " + std::to_string(ranks[0]->pid()) + ") cannot reach it",
            std::string("set TUTTI_SOCKET_IFNAME"), std::string("TUTTI_ADVERTISE_ADDRESS")})
        EXPECT_NE(rank->err().find(part), std::string::npos) << rank->report();
    }
  }
}

// The ranks assume costs before they measure any. The assumed costs differ between the hosts, because the
// ranks of the second host are tied to one processor. All ranks must still choose the same algorithm when
// they agree on costs.
TEST(SeveralHosts, HostsWithDifferentProcessorsMeet) {
  const NetworkHosts network(2);
  if (!network.problem().empty()) GTEST_SKIP() << network.problem();
  std::vector<std::unique_ptr<Process>> ranks;
  constexpr int size = 8;
  for (int rank = 0; rank < size; ++rank) {
    const Process::Environment environment = {
        {"TUTTI_RANK", std::to_string(rank)},
        {"TUTTI_WORLD_SIZE", std::to_string(size)},
        {"TUTTI_INIT_METHOD", "tcp://" + network.address(0) + ":29615"}};
    std::vector<std::string> command = {std::string(TUTTI_BIN_DIR) + "/01_hello"};
    const int host = rank < size / 2 ? 0 : 1;
    if (host == 1) command.insert(command.begin(), {"taskset", "-c", "0"});
    ranks.push_back(std::make_unique<Process>(network.on(host, command), environment));
  }
  for (const auto& rank : ranks) EXPECT_EQ(rank->wait(std::chrono::minutes(10)), 0) << rank->report();
}

TEST(SeveralHosts, UnequalHostsAndRanksInTurn) {
  const NetworkHosts network(3);
  if (!network.problem().empty()) GTEST_SKIP() << network.problem();
  run_on(network, {0, 1, 0, 1});
  run_on(network, {1, 0, 0, 2, 0});
}

}  // namespace
}  // namespace tutti::test
