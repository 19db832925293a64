#include "tests/conformance/channel_conformance.h"
#include "transport/inproc/factory.h"

namespace tutti::conformance {
namespace {

class InprocFixture final : public TransportFixture {
 public:
  std::string name() const override { return "inproc"; }
  void new_world() override { hub_ = inproc::make_hub(); }
  std::unique_ptr<Transport> create(int rank, bool small_buffers, const MessageLimits& limits) override {
    return inproc::create({hub_, rank, small_buffers ? std::size_t{1024} : std::size_t{256 * 1024}, limits});
  }

 private:
  std::shared_ptr<inproc::Hub> hub_;
};

std::unique_ptr<TransportFixture> make_inproc_fixture() { return std::make_unique<InprocFixture>(); }

INSTANTIATE_TEST_SUITE_P(Inproc, ChannelConformance, ::testing::Values(&make_inproc_fixture));
INSTANTIATE_TEST_SUITE_P(Inproc, ChannelFailures, ::testing::Values(&make_inproc_fixture));

}  // namespace
}  // namespace tutti::conformance
