// Tests shared memory between real processes: deaths, containers, namespaces, forks.

#include <csignal>
#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string program = TUTTI_BIN_DIR "/tests/shared_memory_rank";
const Process::Environment talkative = {{"TUTTI_LOG_LEVEL", "info"}};
const Process::Environment shm_only = {{"TUTTI_TRANSPORTS", "shm"}, {"TUTTI_LOG_LEVEL", "info"}};

std::vector<std::string> rank_command(int rank, int size, std::uint16_t port, const std::string& mode,
                                      const std::string& host = "127.0.0.1") {
  return {program,
          "tcp://" + host + ":" + std::to_string(port) + "?rank=" + std::to_string(rank) +
              "&world_size=" + std::to_string(size),
          mode};
}

struct Ranks {
  std::deque<Process> processes;

  Ranks(int size, const std::string& mode, const Process::Environment& environment = shm_only) {
    const std::uint16_t port = unused_port();
    for (int rank = 0; rank < size; ++rank) {
      processes.emplace_back(rank_command(rank, size, port, mode), environment);
    }
  }
  bool are_ready() {
    for (Process& process : processes) {
      if (!process.wait_for_output("ready\n")) return false;
    }
    return true;
  }
  // Expects that all other ranks fail with `peer_lost`, and that their messages name the killed rank.
  void expect_lost(std::size_t killed) {
    const std::string name = "rank " + std::to_string(killed) + " (host ";
    const std::string pid = "pid " + std::to_string(processes[killed].pid()) + ")";
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
      if (rank == killed) continue;
      EXPECT_EQ(processes[rank].wait(), 1) << processes[rank].report();
      EXPECT_THAT(processes[rank].err(), HasSubstr("peer_lost")) << "rank " << rank;
      EXPECT_THAT(processes[rank].err(), HasSubstr(name)) << "rank " << rank;
      EXPECT_THAT(processes[rank].err(), HasSubstr(pid)) << "rank " << rank;
    }
  }
};

TEST(SharedMemory, CarriesEverything) {
  Ranks ranks(4, "end");
  for (Process& process : ranks.processes) {
    EXPECT_EQ(process.wait(), 0) << process.report();
    EXPECT_THAT(process.err(), Not(HasSubstr("not used"))) << process.report();
  }
}

TEST(SharedMemory, CommunicatorsShareMemoryWithoutAnyDescriptor) {
  Ranks ranks(4, "splits", {{"TUTTI_LOG_LEVEL", "warn"}});
  for (Process& process : ranks.processes) EXPECT_EQ(process.wait(), 0) << process.report();
}

// Rank 0 leads the host's segment, and learns first of a loss. The communicator of ranks 1 to 3 does not
// contain rank 0, but must also learn of the loss of rank 3.
TEST(SharedMemory, AKilledRankIsNamedInACommunicatorWithoutTheLeader) {
  Ranks ranks(4, "others");
  ASSERT_TRUE(ranks.are_ready());
  ranks.processes[3].signal(SIGKILL);
  ranks.expect_lost(3);
}

TEST(SharedMemory, RegisteredMemoryIsUnmappedOnceNobodyUsesIt) {
  Ranks ranks(4, "free");
  for (Process& process : ranks.processes) EXPECT_EQ(process.wait(), 0) << process.report();
}

TEST(SharedMemory, AKilledRankIsNamedToWhoWaitsForItsMessage) {
  Ranks ranks(3, "recv");
  ASSERT_TRUE(ranks.are_ready());
  ranks.processes[2].signal(SIGKILL);
  ranks.expect_lost(2);
}

TEST(SharedMemory, AKilledRankIsNamedToAllInACollective) {
  Ranks ranks(4, "reduce");
  ASSERT_TRUE(ranks.are_ready());
  ranks.processes[3].signal(SIGKILL);
  ranks.expect_lost(3);
}

// Rank 0 is the leader of the host's segment.
TEST(SharedMemory, AKilledLeaderIsNamedToAllInACollective) {
  Ranks ranks(4, "all");
  ASSERT_TRUE(ranks.are_ready());
  ranks.processes[0].signal(SIGKILL);
  ranks.expect_lost(0);
}

// --- in containers ---

// Returns a shell script that runs both ranks. Callers prepend commands that prepare the environment.
std::string both(const std::string& mode) {
  const std::uint16_t port = unused_port();
  std::string script;
  for (int rank = 1; rank >= 0; --rank) {
    const auto words = rank_command(rank, 2, port, mode);
    script += words[0] + " '" + words[1] + "' " + words[2] + (rank == 1 ? " & " : "; status=$?; ");
  }
  return script + "wait $! && exit $status";
}

class Container : public testing::TestWithParam<const char*> {};

// Docker gives containers 64 MB in /dev/shm, and some containers cannot use this folder at all. So shared
// memory must work without it.
TEST_P(Container, NeedsNoDevShm) {
  Process possible({"unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"});
  if (possible.wait() != 0) GTEST_SKIP() << "mount namespaces are not permitted here: " << possible.err();
  Process run({"unshare", "-m", "sh", "-c", std::string(GetParam()) + " && " + both("end")}, shm_only);
  EXPECT_EQ(run.wait(), 0) << run.report();
}

INSTANTIATE_TEST_SUITE_P(, Container,
                         testing::Values("mount -t tmpfs -o size=4k tmpfs /dev/shm && "
                                         "{ head -c 8192 /dev/zero > /dev/shm/full || true; }",
                                         "mount -t tmpfs -o mode=000,ro tmpfs /dev/shm"));

TEST(SharedMemory, WorksAcrossIpcNamespaces) {
  Process possible({"unshare", "-i", "true"});
  if (possible.wait() != 0) GTEST_SKIP() << "ipc namespaces are not permitted here: " << possible.err();
  const std::uint16_t port = unused_port();
  std::deque<Process> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<std::string> words = rank_command(rank, 2, port, "end");
    words.insert(words.begin(), {"unshare", "-i"});
    ranks.emplace_back(words, shm_only);
  }
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), 0) << rank.report();
}

// `Cable` makes two network namespaces with a cable between them. Its destructor removes them.
class Cable {
 public:
  Cable() : prefix_("tt" + std::to_string(getpid() % 100000)) {
    const std::string a = name(0), b = name(1);
    std::string script = "ip link add " + name(0) + " type veth peer name " + name(1);
    for (int side = 0; side < 2; ++side) {
      const std::string both = name(side), ip = "; ip -n " + both;
      script = "ip netns add " + both + "; " + script + "; ip link set " + both + " netns " + both;
      script +=
          ip + " link set lo up" + ip + " addr add 10.99.0." + std::to_string(side + 1) + "/24 dev " + both;
      script += ip + " link set " + both + " up";
    }
    Process made({"sh", "-ec", script});
    permitted = made.wait() == 0;
    why = made.err();
  }
  ~Cable() {
    for (int side = 0; side < 2; ++side) Process({"ip", "netns", "del", name(side)}).wait();
  }
  std::string name(int side) const { return prefix_ + (side == 0 ? "a" : "b"); }

  bool permitted = false;
  std::string why;

 private:
  std::string prefix_;
};

TEST(SharedMemory, SeparateNetworkNamespacesFallBackWithALineThatSaysWhy) {
  const Cable cable;
  if (!cable.permitted) GTEST_SKIP() << "network namespaces are not permitted here: " << cable.why;
  std::deque<Process> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<std::string> words = rank_command(rank, 2, 29555, "end", "10.99.0.1");
    words.insert(words.begin(), {"ip", "netns", "exec", cable.name(rank)});
    ranks.emplace_back(words, talkative);
  }
  for (Process& rank : ranks) {
    EXPECT_EQ(rank.wait(), 0) << rank.report();
    const std::string log = rank.err();
    const auto line = log.find("shm is not used with rank ");
    ASSERT_NE(line, log.npos) << rank.report();
    EXPECT_THAT(log, HasSubstr("is in another network namespace"));
    EXPECT_EQ(log.find("shm is not used", line + 1), log.npos) << "said twice: " << rank.report();
  }
}

}  // namespace
}  // namespace tutti::test
