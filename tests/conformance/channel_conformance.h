#pragma once

#include "tests/conformance/channel_world.h"

namespace tutti::conformance {

// The tests in channel_conformance*.cc check the promises that every transport makes. To test a transport,
// write a fixture and add
//   INSTANTIATE_TEST_SUITE_P(Tcp, ChannelConformance, ::testing::Values(&make_tcp_fixture));
//   INSTANTIATE_TEST_SUITE_P(Tcp, ChannelFailures, ::testing::Values(&make_tcp_fixture));
class ChannelConformance : public ::testing::TestWithParam<MakeFixture> {};
class ChannelFailures : public ::testing::TestWithParam<MakeFixture> {};

}  // namespace tutti::conformance
