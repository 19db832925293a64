// Tests collectives on device memory. The ranks are real processes that use the fake CUDA and the fake NCCL.
// The tests cover both libraries, drivers and libraries that are missing, and SIGKILL while a library works.
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/faults/fault_world.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;

FaultWorld::Options with(const std::string& library) {
  return {.transport = library == "nccl" ? "nccl,tcp" : "tcp",
          .program = "device_rank",
          .more = {{"TUTTI_CUDA_LIBRARY", TUTTI_FAKE_CUDA}, {"TUTTI_NCCL_LIBRARY", TUTTI_FAKE_NCCL}}};
}

class Devices : public testing::TestWithParam<std::string> {};

TEST_P(Devices, AreSummed) {
  FaultWorld world(3, {"sum"}, with(GetParam()));
  for (int rank = 0; rank < world.size(); ++rank) {
    EXPECT_EQ(world.rank(rank).wait(), 0) << world.report();
    EXPECT_EQ(world.rank(rank).out(), "ready\nsum 3\n") << world.report();
  }
}

TEST_P(Devices, ADeadRankIsNamedAndTheOthersContinue) {
  FaultWorld world(3, {"loop"}, with(GetParam()));
  ASSERT_TRUE(world.ready());
  world.rank(1).signal(SIGKILL);
  for (const int rank : {0, 2}) {
    const auto failure = world.failure(rank);
    ASSERT_TRUE(failure) << world.report();
    EXPECT_EQ(failure->code, "peer_lost") << failure->message;
    EXPECT_TRUE(world.names(failure->message, 1)) << failure->message;
    EXPECT_EQ(world.rank(rank).wait(), 0) << world.report();
    EXPECT_THAT(world.rank(rank).out(), HasSubstr("shrunk 2 0 0\nsum 2\n")) << world.report();
  }
}

INSTANTIATE_TEST_SUITE_P(, Devices, testing::Values("nccl", "staged"),
                         [](const auto& each) { return each.param; });

TEST(MissingDevices, ARankWithoutADriverIsNamedOnAllRanks) {
  FaultWorld::Options options = with("staged");
  options.only_rank_0 = options.more;
  options.more = {};
  FaultWorld world(2, {"sum"}, options);
  for (const int rank : {0, 1}) {
    const auto failure = world.failure(rank);
    ASSERT_TRUE(failure) << world.report();
    EXPECT_EQ(failure->code, "unsupported") << failure->message;
    EXPECT_TRUE(world.names(failure->message, 1)) << failure->message;
  }
}

TEST(MissingDevices, ALibraryThatIsNamedMustExist) {
  for (const std::string name : {"TUTTI_CUDA_LIBRARY", "TUTTI_NCCL_LIBRARY"}) {
    FaultWorld::Options options = with("nccl");
    options.more[name] = "/no/such/library.so";
    FaultWorld world(1, {"sum"}, options);
    const auto failure = world.failure(0);
    ASSERT_TRUE(failure) << world.report();
    EXPECT_EQ(failure->code, "unsupported") << failure->message;
    EXPECT_THAT(failure->message, HasSubstr("/no/such/library.so"));
  }
}

TEST(MissingDevices, NcclAloneIsNoTransport) {
  FaultWorld::Options options = with("nccl");
  options.transport = "nccl";
  FaultWorld world(1, {"sum"}, options);
  const auto failure = world.failure(0);
  ASSERT_TRUE(failure) << world.report();
  EXPECT_EQ(failure->code, "invalid_argument") << failure->message;
  EXPECT_THAT(failure->message, HasSubstr("name a transport between processes"));
}

}  // namespace
}  // namespace tutti::test
