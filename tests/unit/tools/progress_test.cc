#include "tools/run/progress.h"

#include <thread>

#include <asio/post.hpp>
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

// A progress report must not follow the error of a launcher that gives up, even if the report is
// already due.
TEST(Progress, IsSilentOnceItWasStopped) {
  asio::io_context io{1};
  int notes = 0;
  Progress progress(
      io, [] { return Progress::State{.hosts = 1, .missing = {}}; }, [&](const auto&) { ++notes; });
  progress.start();
  std::this_thread::sleep_for(2100ms);  // the first report is due
  asio::post(io, [&] { progress.stop(); });
  io.run_for(100ms);
  EXPECT_EQ(notes, 0);
}

}  // namespace
}  // namespace tutti::tools
