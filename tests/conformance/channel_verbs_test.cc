#include <chrono>
#include <limits>

#include "tests/conformance/channel_conformance.h"
#include "tests/verbs/tested_library.h"
#include "transport/verbs/factory.h"

namespace tutti::conformance {
namespace {

// A `VerbsFixture` uses either a device that exists only in this process or a device of the system
// (`TestedLibrary`).
class VerbsFixture final : public TransportFixture {
 public:
  std::string name() const override { return "verbs"; }
  std::string why_not() const override {
    const auto made = verbs::create(options());
    return made.ok() ? std::string() : made.status().message();
  }
  std::unique_ptr<Transport> create(int, bool small_buffers, const MessageLimits& limits) override {
    verbs::Options made = options();
    made.limits = limits;
    // The limit is long, since sixteen ranks may share two emulated processors.
    made.probe_timeout = std::chrono::minutes(1);
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

  const std::shared_ptr<test::TestedLibrary> library_ = shared_library();
};

std::unique_ptr<TransportFixture> make_verbs_fixture() { return std::make_unique<VerbsFixture>(); }

INSTANTIATE_TEST_SUITE_P(Verbs, ChannelConformance, ::testing::Values(&make_verbs_fixture));
INSTANTIATE_TEST_SUITE_P(Verbs, ChannelFailures, ::testing::Values(&make_verbs_fixture));
INSTANTIATE_TEST_SUITE_P(Verbs, ChannelGrants, ::testing::Values(&make_verbs_fixture));

}  // namespace
}  // namespace tutti::conformance
