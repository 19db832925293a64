#include "tests/conformance/inproc_fixture.h"

namespace tutti::conformance {
namespace {

INSTANTIATE_TEST_SUITE_P(Inproc, ChannelConformance, ::testing::Values(&make_inproc_fixture<0>));
INSTANTIATE_TEST_SUITE_P(Inproc, ChannelFailures, ::testing::Values(&make_inproc_fixture<0>));
INSTANTIATE_TEST_SUITE_P(Inproc, ChannelGrants,
                         ::testing::Values(&make_inproc_fixture<0>, &make_inproc_fixture<10>));

}  // namespace
}  // namespace tutti::conformance
