#include "channel_conformance.h"
#include <tutti/transport/tcp/factory.h>

namespace tutti::conformance {
namespace {

class TcpFixture final : public TransportFixture {
 public:
  std::string name() const override { return "tcp"; }
  std::unique_ptr<Transport> create(int, bool small_buffers) override {
    tcp::Options options;
    if (small_buffers) options.socket_buffer = 4096;
    return tcp::create(options).take();
  }
};

std::unique_ptr<TransportFixture> make_fixture() { return std::make_unique<TcpFixture>(); }

INSTANTIATE_TEST_SUITE_P(Tcp, ChannelConformance, ::testing::Values(&make_fixture));
INSTANTIATE_TEST_SUITE_P(Tcp, ChannelFailures, ::testing::Values(&make_fixture));

}  // namespace
}  // namespace tutti::conformance
