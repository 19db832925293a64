// Tests that an abort by one rank ends every wait on all ranks.

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/faults/fault_world.h"

namespace tutti::test {
namespace {

TEST(Abort, EndsAllWaits) {
  for (const int size : {1, 2, 5, 16}) {
    for (const std::string transport : {"tcp", "shm"}) {
      const int who = size / 3;
      FaultWorld world(size, {"abort", std::to_string(who)}, {.transport = transport});
      ASSERT_TRUE(world.ready());
      ASSERT_TRUE(world.rank(who).wait_for_output("aborting "));
      double longest = 0;
      std::int64_t began = 0;
      std::istringstream(world.rank(who).out().substr(world.rank(who).out().find("aborting ") + 9)) >> began;
      for (int rank = 0; rank < size; ++rank) {
        const auto failure = world.failure(rank);
        ASSERT_TRUE(failure) << world.report();
        EXPECT_EQ(failure->code, "aborted");
        EXPECT_TRUE(world.names(failure->message, who)) << failure->message;
        EXPECT_NE(failure->message.find("enough"), failure->message.npos) << failure->message;
        longest = std::max(longest, static_cast<double>(failure->when - began) / 1e6);
      }
      std::printf("%d ranks over %s: aborted after %.1f ms\n", size, transport.c_str(), longest);
    }
  }
}

}  // namespace
}  // namespace tutti::test
