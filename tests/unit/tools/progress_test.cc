#include "tools/run/progress.h"

#include <gtest/gtest.h>

namespace tutti::tools {
namespace {

using namespace std::chrono_literals;

TEST(Progress, NamesTheHostsThatAreMissing) {
  const Progress::State state{
      .hosts = 8, .missing = {{"gamma", "Connection refused (tried 3 times)"}, {"delta", "ssh is running"}}};
  EXPECT_EQ(progress_report(state, 2s),
            "6 of 8 hosts are up after 2.0 s; waiting for\n"
            "  gamma: Connection refused (tried 3 times)\n"
            "  delta: ssh is running");
}

TEST(Progress, OfManyHostsItNamesTen) {
  Progress::State state{.hosts = 100, .missing = {}};
  for (int host = 0; host < 13; ++host)
    state.missing.push_back({"n" + std::to_string(host), "ssh is running"});
  const std::string report = progress_report(state, 4s);
  EXPECT_NE(report.find("\n  n9: ssh is running\n  and 3 more"), report.npos) << report;
  EXPECT_EQ(report.find("n10"), report.npos) << report;
}

}  // namespace
}  // namespace tutti::tools
