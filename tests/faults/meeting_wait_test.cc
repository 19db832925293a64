// Tests the log of ranks that wait for a rank that never comes. The log says where they wait, and
// for which ranks. Also tests that ranks of one host meet under mpirun without settings.
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

constexpr std::chrono::seconds limit{100};

Process rank_at(const std::string& place, int rank) {
  return Process(
      {std::string(TUTTI_BIN_DIR) + "/tests/fault_rank", "idle"},
      {{"TUTTI_RANK", std::to_string(rank)}, {"TUTTI_WORLD_SIZE", "3"}, {"TUTTI_INIT_METHOD", place}});
}

bool says(Process& rank, const std::string& text) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (rank.err().find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

TEST(MeetingWait, IsSpokenOf) {
  const std::string port = std::to_string(unused_port()), other = std::to_string(unused_port());
  // RFC 5737 reserves this address, so no host has it.
  const std::string far = "tcp://192.0.2.1:" + std::to_string(unused_port());
  Process zero = rank_at("tcp://127.0.0.1:" + port, 0), one = rank_at("tcp://127.0.0.1:" + port, 1),
          alone = rank_at("tcp://127.0.0.1:" + other, 1), misled = rank_at(far, 0);
  for (Process* const rank : {&zero, &one}) {
    EXPECT_TRUE(says(*rank, " at tcp://127.0.0.1:" + port + " for rank 2 (world size 3)")) << rank->report();
    EXPECT_TRUE(says(*rank, "has waited for 1")) << rank->report();
  }
  EXPECT_TRUE(says(alone, "for a store at 127.0.0.1:" + other)) << alone.report();
  EXPECT_TRUE(says(misled, "at " + far + ", which is not an address of rank 0's host")) << misled.report();
}

TEST(MeetingUnderMpirun, OnOneHostNeedsNoPlace) {
  const ScratchFolder folder;
  const auto start = [&](int rank) {
    return Process({std::string(TUTTI_BIN_DIR) + "/tests/fault_rank", "idle"},
                   {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
                    {"OMPI_COMM_WORLD_SIZE", "2"},
                    {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank)},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                    {"PMIX_NAMESPACE", "prterun-host-17@1"},
                    {"XDG_RUNTIME_DIR", folder.path()}});
  };
  Process zero = start(0), one = start(1);
  EXPECT_TRUE(zero.wait_for_output("ready\n", limit)) << zero.report();
  EXPECT_TRUE(one.wait_for_output("ready\n", limit)) << one.report();
}

}  // namespace
}  // namespace tutti::test
