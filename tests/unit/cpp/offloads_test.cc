#include "bindings/cpp/offloads.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/fake_cuda.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* missing = "/no/such/library.so";

Config with(const std::string& cuda, const std::string& nccl) {
  Config config;
  config.cuda_library = cuda;
  config.nccl_library = nccl;
  return config;
}

// Returns the names of the offloads that are made, or the error.
std::vector<std::string> made(const std::vector<std::string>& transports, const Config& config) {
  const auto offloads = make_offloads(transports, config);
  if (!offloads.ok()) return {offloads.status().to_string()};
  std::vector<std::string> names;
  for (const auto& each : *offloads) names.emplace_back(each->name());
  return names;
}

TEST(Offloads, ListsOfTransportsMayLeaveNcclOut) {
  const Config both = with(TUTTI_FAKE_CUDA, TUTTI_FAKE_NCCL);
  EXPECT_THAT(made({}, both), ElementsAre("nccl", "staged"));
  EXPECT_THAT(made({"auto"}, both), ElementsAre("nccl", "staged"));
  EXPECT_THAT(made({"nccl", "tcp"}, both), ElementsAre("nccl", "staged"));
  EXPECT_THAT(made({"shm", "tcp"}, both), ElementsAre("staged"));
}

TEST(Offloads, LibrariesThatAreNamedMustWork) {
  EXPECT_THAT(made({}, with(missing, TUTTI_FAKE_NCCL)), ElementsAre(HasSubstr(missing)));
  EXPECT_THAT(made({}, with(TUTTI_FAKE_CUDA, missing)), ElementsAre(HasSubstr(missing)));
  EXPECT_THAT(made({"nccl", "tcp"}, with(TUTTI_FAKE_CUDA, missing)), ElementsAre(HasSubstr(missing)));
  EXPECT_THAT(made({"tcp"}, with(TUTTI_FAKE_CUDA, missing)), ElementsAre("staged"));
}

// NCCL makes its own connections, which are not encrypted.
TEST(Offloads, NcclIsLeftOutOrRefusedIfDataMustBeEncrypted) {
  Config config = with(TUTTI_FAKE_CUDA, "");
  config.tls = true;
  EXPECT_THAT(made({}, config), ElementsAre("staged"));
  config.nccl_library = TUTTI_FAKE_NCCL;
  EXPECT_THAT(made({}, config), ElementsAre(HasSubstr("would not be encrypted")));
  EXPECT_THAT(made({"nccl", "tcp"}, config), ElementsAre(HasSubstr("would not be encrypted")));
  EXPECT_THAT(made({"shm", "tcp"}, config), ElementsAre("staged"));
}

TEST(Offloads, APipeIsNoLibrary) {
  const ScratchFolder folder;
  const std::string pipe = folder.path() + "/library.so";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(made({}, with(pipe, "")), ElementsAre(HasSubstr("is a pipe")));
  EXPECT_THAT(made({}, with(TUTTI_FAKE_CUDA, pipe)), ElementsAre(HasSubstr("is a pipe")));
}

TEST(Offloads, ANamedDriverDoesNotDemandNccl) {
  const std::vector<std::string> names = made({}, with(TUTTI_FAKE_CUDA, ""));
  EXPECT_EQ(std::ranges::count(names, "staged"), 1) << names.front();
}

TEST(Offloads, RanksNeedATransport) {
  EXPECT_EQ(without_offloads({"nccl"}).status().code(), Code::invalid_argument);
  EXPECT_THAT(*without_offloads({"nccl", "tcp"}), ElementsAre("tcp"));
}

}  // namespace
}  // namespace tutti::test
