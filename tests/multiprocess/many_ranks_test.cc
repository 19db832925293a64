// Tests a world with far more ranks than the machine has cores.

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace tutti::test {
namespace {

using std::chrono::minutes;

const std::string bin = TUTTI_BIN_DIR;
constexpr int ranks = 64;

TEST(ManyRanks, HelloOf64) {
  Process run({bin + "/tutti", "run", "-n", std::to_string(ranks), "--", bin + "/01_hello"});
  ASSERT_EQ(run.wait(minutes(10)), 0) << run.report();
  const std::string out = run.out();
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_NE(out.find("Hello from rank " + std::to_string(rank) + " "), std::string::npos) << run.report();
  }
  EXPECT_NE(out.find("together they counted to 64"), std::string::npos) << run.report();
}

TEST(ManyRanks, SocketsAndThreadsAreBounded) {
  Process run({bin + "/tutti", "run", "-n", std::to_string(ranks), "--", bin + "/tests/rank_resources"});
  ASSERT_EQ(run.wait(minutes(10)), 0) << run.report();
  std::istringstream lines(run.out());
  int most_sockets = 0;
  int sockets_of_leader = 0;
  int most_descriptors = 0;
  int most_threads = 0;
  int reports = 0;
  for (std::string line; std::getline(lines, line);) {
    int rank = 0;
    int sockets = 0;
    int descriptors = 0;
    int threads = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "rank %d sockets %d descriptors %d threads %d", &rank, &sockets,
                          &descriptors, &threads),
              4)
        << line;
    int& most = rank == 0 ? sockets_of_leader : most_sockets;
    most = std::max(most, sockets);
    most_descriptors = std::max(most_descriptors, descriptors - sockets);
    most_threads = std::max(most_threads, threads);
    ++reports;
  }
  EXPECT_EQ(reports, ranks);
  std::printf("%d ranks: at most %d sockets (%d at rank 0), %d other descriptors and %d threads per rank\n",
              ranks, most_sockets, sockets_of_leader, most_descriptors, most_threads);
  // These are the threads of the program, of the driver, of the control plane and of `tutti debug`.
  EXPECT_LE(most_threads, 4);
  constexpr int doublings = 6;
  // A rank is not connected to every other rank. Each doubling of the world adds only a few
  // connections, for messages and for the control plane. A rank also has one socket for each rank
  // of its host, to wake that rank.
  EXPECT_LE(most_sockets, ranks + 6 * doublings + 7);
  EXPECT_LE(sockets_of_leader,
            2 * ranks + 6 * doublings + 7);  // and a connection from each rank for the shared segment
  // Each rank also holds a descriptor for the process of each of its neighbours.
  EXPECT_LE(most_descriptors, 2 * doublings + 18);
}

}  // namespace
}  // namespace tutti::test
