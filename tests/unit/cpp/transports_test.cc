#include "bindings/cpp/transports.h"

#include <algorithm>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Transports, VerbsIsLeftOutUnlessDevicesAreChosen) {
  const auto verbs = std::ranges::find(transport_entries(), "verbs", &TransportEntry::name);
  ASSERT_NE(verbs, transport_entries().end());
  unsetenv("NCCL_IB_HCA");
  const Status left_out = verbs->left_out(Config{});
  EXPECT_EQ(left_out.code(), Code::unsupported);
  EXPECT_THAT(left_out.message(), testing::HasSubstr("TUTTI_IB_HCA"));
  Config chosen;
  chosen.ib_hca = "mlx5";
  EXPECT_TRUE(verbs->left_out(chosen).ok());
  setenv("NCCL_IB_HCA", "mlx5", 1);
  EXPECT_TRUE(verbs->left_out(Config{}).ok());
  unsetenv("NCCL_IB_HCA");
}

}  // namespace
}  // namespace tutti
