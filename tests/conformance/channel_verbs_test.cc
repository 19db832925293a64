#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "tests/conformance/channel_conformance.h"
#include "tests/verbs/tested_library.h"
#include "transport/verbs/factory.h"

namespace tutti::conformance {
namespace {

// A `VerbsFixture` uses either devices that exist only in this process or devices of the system
// (`TestedLibrary`). `devices` lists the devices to use, each as a rail.
class VerbsFixture final : public TransportFixture {
 public:
  explicit VerbsFixture(std::string devices) : devices_(std::move(devices)) {}
  std::string name() const override { return "verbs"; }
  std::string why_not() const override {
    const auto made = verbs::create(options());
    return made.ok() ? std::string() : made.status().message();
  }
  std::unique_ptr<Transport> create(int, bool small_buffers, const MessageLimits& limits) override {
    verbs::Options made = options();
    made.limits = limits;
    // The limits are long, since sixteen ranks may share two emulated processors.
    made.probe_timeout = std::chrono::minutes(1);
    made.most_checks = 1000;
    made.handshake_timeout = std::chrono::minutes(1);
    if (small_buffers) {
      made.slots = 8;
      made.slot_bytes = 1024;
    }
    return verbs::create(made).take();
  }

 private:
  verbs::Options options() const {
    verbs::Options made;
    made.functions = &library_->functions();
    made.settings.devices = devices_;
    made.register_from = std::numeric_limits<std::size_t>::max();  // the tests expect copies
    return made;
  }
  // Returns the library that all existing fixtures share, so that their worlds share a network.
  static std::shared_ptr<test::TestedLibrary> shared_library() {
    static std::weak_ptr<test::TestedLibrary> shared;
    std::shared_ptr<test::TestedLibrary> library = shared.lock();
    if (library == nullptr) shared = library = std::make_shared<test::TestedLibrary>();
    return library;
  }

  const std::string devices_;
  const std::shared_ptr<test::TestedLibrary> library_ = shared_library();
};

std::unique_ptr<TransportFixture> make_one_rail() { return std::make_unique<VerbsFixture>("=rxe0"); }
std::unique_ptr<TransportFixture> make_two_rails() { return std::make_unique<VerbsFixture>("=rxe0,rxe1"); }

INSTANTIATE_TEST_SUITE_P(Verbs, ChannelConformance, ::testing::Values(&make_one_rail));
INSTANTIATE_TEST_SUITE_P(Verbs, ChannelFailures, ::testing::Values(&make_one_rail));
INSTANTIATE_TEST_SUITE_P(Verbs, ChannelGrants, ::testing::Values(&make_one_rail));
INSTANTIATE_TEST_SUITE_P(VerbsRails, ChannelConformance, ::testing::Values(&make_two_rails));
INSTANTIATE_TEST_SUITE_P(VerbsRails, ChannelFailures, ::testing::Values(&make_two_rails));
INSTANTIATE_TEST_SUITE_P(VerbsRails, ChannelGrants, ::testing::Values(&make_two_rails));

}  // namespace
}  // namespace tutti::conformance
