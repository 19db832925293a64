// Tests collectives and messages on device memory. The ranks are real processes. They use the fake CUDA and
// the fake NCCL, or the libraries that TEST_CUDA_LIBRARY and TEST_NCCL_LIBRARY name. The tests check the
// results of both libraries, the errors if a driver or library is missing, and the failures if a rank is
// killed while a library works.
#include <csignal>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/faults/fault_world.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;

std::string named(const char* variable, const char* otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? otherwise : value;
}

std::string cuda_library() { return named("TEST_CUDA_LIBRARY", TUTTI_FAKE_CUDA); }

// LeakSanitizer stops all threads when a rank exits, and may crash while threads of the fakes are
// ending. So LeakSanitizer is off here. conformance_nccl and conformance_staged look for leaks.
FaultWorld::Options with(const std::string& library) {
  return {.transport = library == "nccl" ? "nccl,tcp" : "tcp",
          .program = "device_rank",
          .more = {{"ASAN_OPTIONS", named("ASAN_OPTIONS", "") + ":detect_leaks=0"},
                   {"TUTTI_CUDA_LIBRARY", cuda_library()},
                   {"TUTTI_NCCL_LIBRARY", named("TEST_NCCL_LIBRARY", TUTTI_FAKE_NCCL)}}};
}

// Returns the arguments of `device_rank`.
std::vector<std::string> words(const std::string& mode) { return {mode, cuda_library()}; }

class Devices : public testing::TestWithParam<std::string> {};

TEST_P(Devices, AreSummed) {
  FaultWorld world(3, words("sum"), with(GetParam()));
  for (int rank = 0; rank < world.size(); ++rank) {
    EXPECT_EQ(world.rank(rank).wait(), 0) << world.report();
    EXPECT_EQ(world.rank(rank).out(), "ready\nsum 3\n") << world.report();
  }
}

TEST_P(Devices, ADeadRankIsNamedAndTheOthersContinue) {
  FaultWorld world(3, words("loop"), with(GetParam()));
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

class DevicesOfSize : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(DevicesOfSize, EveryCollective) {
  const auto& [library, size] = GetParam();
  FaultWorld world(size, words("collectives"), with(library));
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(world.rank(rank).wait(), 0) << world.report();
    EXPECT_THAT(world.rank(rank).out(), HasSubstr("ready\nright ")) << world.report();
  }
}

TEST_P(DevicesOfSize, MessagesFromAndToTheDeviceAndTheHost) {
  const auto& [library, size] = GetParam();
  FaultWorld world(size, words("messages"), with(library));
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(world.rank(rank).wait(), 0) << world.report();
    EXPECT_THAT(world.rank(rank).out(), HasSubstr("ready\nright 16\n")) << world.report();
  }
}

INSTANTIATE_TEST_SUITE_P(, DevicesOfSize,
                         testing::Combine(testing::Values("nccl", "staged"), testing::Values(2, 3, 4)),
                         [](const auto& each) {
                           return std::get<0>(each.param) + "_" + std::to_string(std::get<1>(each.param));
                         });

INSTANTIATE_TEST_SUITE_P(, Devices, testing::Values("nccl", "staged"),
                         [](const auto& each) { return each.param; });

TEST(MissingDevices, ARankWithoutADriverIsNamedOnAllRanks) {
  FaultWorld::Options options = with("staged");
  options.only_rank_0 = options.more;
  options.more = {};
  FaultWorld world(2, words("sum"), options);
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
    FaultWorld world(1, words("sum"), options);
    const auto failure = world.failure(0);
    ASSERT_TRUE(failure) << world.report();
    EXPECT_EQ(failure->code, "unsupported") << failure->message;
    EXPECT_THAT(failure->message, HasSubstr("/no/such/library.so"));
  }
}

TEST(MissingDevices, NcclAloneIsNoTransport) {
  FaultWorld::Options options = with("nccl");
  options.transport = "nccl";
  FaultWorld world(1, words("sum"), options);
  const auto failure = world.failure(0);
  ASSERT_TRUE(failure) << world.report();
  EXPECT_EQ(failure->code, "invalid_argument") << failure->message;
  EXPECT_THAT(failure->message, HasSubstr("name a transport between processes"));
}

}  // namespace
}  // namespace tutti::test
