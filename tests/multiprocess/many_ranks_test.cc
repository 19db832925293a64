// A world with far more ranks than the machine has cores.

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <tutti/tests/support/process.h>

namespace tutti::test {
namespace {

using std::chrono::minutes;

const std::string bin = TUTTI_BIN_DIR;
constexpr int ranks = 64;

TEST(ManyRanks, HelloOf64) {
  Process run({bin + "/tutti", "run", "-n", std::to_string(ranks), "--", bin + "/01_hello"});
  ASSERT_EQ(run.wait(minutes(5)), 0) << run.report();
  const std::string out = run.out();
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_NE(out.find("Hello from rank " + std::to_string(rank) + " "), std::string::npos) << run.report();
  }
  EXPECT_NE(out.find("together they counted to 64"), std::string::npos) << run.report();
}

TEST(ManyRanks, SocketsAndThreadsAreBounded) {
  Process run({bin + "/tutti", "run", "-n", std::to_string(ranks), "--", bin + "/tests/rank_resources"});
  ASSERT_EQ(run.wait(minutes(5)), 0) << run.report();
  std::istringstream lines(run.out());
  int most_sockets = 0;
  int most_threads = 0;
  int reports = 0;
  for (std::string line; std::getline(lines, line);) {
    int sockets = 0;
    int threads = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "sockets %d threads %d", &sockets, &threads), 2) << line;
    most_sockets = std::max(most_sockets, sockets);
    most_threads = std::max(most_threads, threads);
    ++reports;
  }
  EXPECT_EQ(reports, ranks);
  std::printf("%d ranks: at most %d sockets and %d threads per rank\n", ranks, most_sockets, most_threads);
  EXPECT_LE(most_threads, 2);          // the program's own and the driver's
  EXPECT_LE(most_sockets, 4 * 6 + 4);  // a few peers per doubling of the world, not one per rank
}

}  // namespace
}  // namespace tutti::test
