#include "tests/conformance/channel_conformance.h"
#include "transport/shm/factory.h"

namespace tutti::conformance {
namespace {

class ShmFixture final : public TransportFixture {
 public:
  std::string name() const override { return "shm"; }
  std::unique_ptr<Transport> create(int, bool small_buffers, const MessageLimits& limits) override {
    shm::Options options;
    options.limits = limits;
    if (small_buffers) options.ring = 4096;
    return shm::create(options).take();
  }
};

std::unique_ptr<TransportFixture> make_shm_fixture() { return std::make_unique<ShmFixture>(); }

INSTANTIATE_TEST_SUITE_P(Shm, ChannelConformance, ::testing::Values(&make_shm_fixture));
INSTANTIATE_TEST_SUITE_P(Shm, ChannelFailures, ::testing::Values(&make_shm_fixture));

}  // namespace
}  // namespace tutti::conformance
