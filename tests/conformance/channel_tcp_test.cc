#include "tests/conformance/channel_conformance.h"
#include "transport/tcp/factory.h"

namespace tutti::conformance {
namespace {

class TcpFixture final : public TransportFixture {
 public:
  explicit TcpFixture(int sockets, bool encrypted = false) : sockets_(sockets) {
    if (!encrypted) return;
    security::Settings settings;
    settings.token = Secret("a token");
    settings.tls = true;
    settings.rekey_bytes = 100'000;
    credentials_ = security::Credentials::create(settings).take();
  }
  std::string name() const override { return "tcp"; }
  std::unique_ptr<Transport> create(int, bool small_buffers, const MessageLimits& limits) override {
    tcp::Options options;
    options.limits = limits;
    options.sockets = sockets_;
    options.credentials = credentials_;
    if (small_buffers) options.socket_buffer = 4096;
    return tcp::create(options).take();
  }

 private:
  int sockets_;
  security::SharedCredentials credentials_;
};

std::unique_ptr<TransportFixture> make_tcp_fixture() { return std::make_unique<TcpFixture>(1); }
std::unique_ptr<TransportFixture> make_several() { return std::make_unique<TcpFixture>(3); }
std::unique_ptr<TransportFixture> make_encrypted() { return std::make_unique<TcpFixture>(3, true); }

INSTANTIATE_TEST_SUITE_P(Tcp, ChannelConformance, ::testing::Values(&make_tcp_fixture));
INSTANTIATE_TEST_SUITE_P(Tcp, ChannelFailures, ::testing::Values(&make_tcp_fixture));
INSTANTIATE_TEST_SUITE_P(TcpStripes, ChannelConformance, ::testing::Values(&make_several));
INSTANTIATE_TEST_SUITE_P(TcpStripes, ChannelFailures, ::testing::Values(&make_several));
INSTANTIATE_TEST_SUITE_P(TcpEncrypted, ChannelConformance, ::testing::Values(&make_encrypted));
INSTANTIATE_TEST_SUITE_P(TcpEncrypted, ChannelFailures, ::testing::Values(&make_encrypted));

}  // namespace
}  // namespace tutti::conformance
