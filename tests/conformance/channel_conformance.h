#pragma once

#include "tests/conformance/channel_world.h"

namespace tutti::conformance {

// The tests in channel_conformance*.cc check the promises that every transport makes. To test a transport,
// write a fixture and add
//   INSTANTIATE_TEST_SUITE_P(Tcp, ChannelConformance, ::testing::Values(&make_tcp_fixture));
//   INSTANTIATE_TEST_SUITE_P(Tcp, ChannelFailures, ::testing::Values(&make_tcp_fixture));
// A transport that writes into its peers' memory (docs/seams/grants.md) also needs a line for
// `ChannelGrants`.
class ChannelSuite : public ::testing::TestWithParam<MakeFixture> {
 protected:
  void SetUp() override {
    if (const std::string why = GetParam()()->why_not(); !why.empty()) GTEST_SKIP() << why;
  }
};
class ChannelConformance : public ChannelSuite {};
class ChannelFailures : public ChannelSuite {};
class ChannelGrants : public ChannelSuite {};

}  // namespace tutti::conformance
