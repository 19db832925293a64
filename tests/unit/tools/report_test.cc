#include "tools/run/report.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace tutti::tools {
namespace {

TEST(FailureReport, NamesTheRankAndShowsItsLastLines) {
  EXPECT_EQ(failure_report({.rank = 5,
                            .host = "beta",
                            .pid = 4711,
                            .status = {.signal = SIGKILL},
                            .others = "the others are being ended",
                            .stream = "stderr",
                            .last_lines = {"epoch 2", "epoch 3"}}),
            "tutti run: rank 5 (host beta, pid 4711) was ended by signal 9 (Killed); the others are being "
            "ended. Its last lines on stderr:\n  rank 5| epoch 2\n  rank 5| epoch 3\n");
}

TEST(FailureReport, SaysThatASingleRankWroteNothing) {
  EXPECT_EQ(failure_report({.rank = 0, .host = "alpha", .pid = 7, .status = {.code = 3}, .stream = "output"}),
            "tutti run: rank 0 (host alpha, pid 7) exited with status 3 and wrote nothing to output\n");
}

TEST(FailureReport, SaysWhichLimitSigxfszMeans) {
  EXPECT_NE(failure_report({.host = "alpha", .status = {.signal = SIGXFSZ}}).find("ulimit -f"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::tools
