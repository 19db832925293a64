// Tests the transport mpi. All ranks are threads of one process, which sends messages to itself through MPI.
// The MPI is a fake, unless TUTTI_TEST_MPI is "launcher". In that case it is the launcher's MPI
// (tests/multiprocess/mpi_transport_test.cc).
#include <memory>
#include <string>

#include "tests/conformance/channel_conformance.h"
#include "tests/support/joined_mpi.h"
#include "transport/mpi/factory.h"

namespace tutti::conformance {
namespace {

class MpiFixture final : public TransportFixture {
 public:
  std::string name() const override { return "mpi"; }
  std::unique_ptr<Transport> create(int, bool small_buffers, const MessageLimits& limits) override {
    // The messenger is never destroyed, like the one of a program.
    static mpi::Messenger* const messenger = test::JoinedMpi::instance().messenger().release();
    mpi::Options options;
    options.messenger = messenger;
    options.limits = limits;
    if (small_buffers) {
      options.receives = 4;
      options.packet_bytes = 1024;
      options.window = 4;
    }
    return mpi::create(options).take();
  }
};

std::unique_ptr<TransportFixture> make_mpi_fixture() { return std::make_unique<MpiFixture>(); }

INSTANTIATE_TEST_SUITE_P(Mpi, ChannelConformance, ::testing::Values(&make_mpi_fixture));
INSTANTIATE_TEST_SUITE_P(Mpi, ChannelFailures, ::testing::Values(&make_mpi_fixture));

}  // namespace
}  // namespace tutti::conformance
