// Tests that a new communicator needs no new descriptors or threads.

#include <cstdio>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace tutti::test {
namespace {

using std::chrono::minutes;

const std::string bin = TUTTI_BIN_DIR;

// A `Report` is the line that a rank of the program many_communicators prints.
struct Report {
  int rank = 0, threads = 0, descriptors = 0, messages = 0, microseconds = 0;
};

std::vector<Report> reports_of(const std::string& out) {
  std::vector<Report> reports;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    Report report;
    const int read = std::sscanf(
        line.c_str(), "rank %d threads %d descriptors %d messages %d microseconds %d", &report.rank,
        &report.threads, &report.descriptors, &report.messages, &report.microseconds);
    if (read == 5) reports.push_back(report);
  }
  return reports;
}

void expect_cheap(int ranks, int communicators, bool shared, const Process::Environment& environment) {
  Process run({bin + "/tutti", "run", "-n", std::to_string(ranks), "--", bin + "/tests/many_communicators",
               std::to_string(communicators)},
              environment);
  ASSERT_EQ(run.wait(minutes(10)), 0) << run.report();
  const std::vector<Report> reports = reports_of(run.out());
  ASSERT_EQ(reports.size(), static_cast<std::size_t>(ranks)) << run.report();
  for (const Report& report : reports) {
    EXPECT_LE(report.threads, 3);
    EXPECT_LE(report.descriptors, 10);
    EXPECT_EQ(report.messages == 0, shared);
    std::printf(
        "rank %d: %d communicators hold %d threads and %d descriptors more than one; making one took %d us\n",
        report.rank, communicators, report.threads, report.descriptors, report.microseconds);
  }
}

TEST(ManyCommunicators, ShareThreadsAndDescriptors) { expect_cheap(4, 1000, true, {}); }

TEST(ManyCommunicators, ShareConnections) { expect_cheap(4, 1000, false, {{"TUTTI_TRANSPORTS", "tcp"}}); }

TEST(ManyCommunicators, ThatDoNotFitIntoTheRoomExchangeMessages) {
  // Shared memory may use at most a quarter of the file size limit. In this test, a few
  // communicators already need more than that.
  Process run(
      {"sh", "-c",
       "ulimit -f 65536; exec " + bin + "/tutti run -n 4 -- " + bin + "/tests/many_communicators 100"});
  ASSERT_EQ(run.wait(minutes(10)), 0) << run.report();
  for (const Report& report : reports_of(run.out())) EXPECT_GT(report.messages, 0);
}

}  // namespace
}  // namespace tutti::test
