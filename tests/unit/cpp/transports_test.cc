#include "bindings/cpp/transports.h"

#include <algorithm>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const TransportEntry& entry(const char* name) {
  const auto found = std::ranges::find(transport_entries(), name, &TransportEntry::name);
  EXPECT_NE(found, transport_entries().end());
  return *found;
}

TEST(Transports, VerbsComesBetweenSharedMemoryAndTcp) {
  std::vector<std::string_view> names;
  for (const TransportEntry& each : transport_entries()) names.push_back(each.name);
  EXPECT_THAT(names, ElementsAre("shm", "verbs", "tcp", "mpi"));
}

TEST(Transports, VerbsIsUsedUnlessNcclMustNotUseIt) {
  unsetenv("NCCL_IB_DISABLE");
  EXPECT_TRUE(entry("verbs").left_out(Config{}).ok());
  setenv("NCCL_IB_DISABLE", "0", 1);
  EXPECT_TRUE(entry("verbs").left_out(Config{}).ok());
  setenv("NCCL_IB_DISABLE", "1", 1);
  const Status left_out = entry("verbs").left_out(Config{});
  EXPECT_EQ(left_out.code(), Code::unsupported);
  EXPECT_THAT(left_out.message(), HasSubstr("NCCL_IB_DISABLE"));
  Config chosen;
  chosen.ib_hca = "mlx5";
  EXPECT_TRUE(entry("verbs").left_out(chosen).ok());
  unsetenv("NCCL_IB_DISABLE");
}

TEST(Transports, EncryptionSwitchesVerbsOff) {
  Config config;
  config.tls = true;
  const auto made = entry("verbs").create({.config = config});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::unsupported);
}

}  // namespace
}  // namespace tutti
