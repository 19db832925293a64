// Tests that memory which the program has not registered can be registered for a single operation.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/conformance/channel_world.h"
#include "tests/verbs/provider/provider.h"
#include "transport/verbs/factory.h"
#include "transport/verbs/registration_cost.h"

namespace tutti::verbs {
namespace {

using conformance::collective;
using conformance::Node;
using conformance::Recv;
using conformance::Send;
using conformance::World;
using provider::Provider;
using provider::Record;

constexpr std::size_t large = 1 << 20;
constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

// Rank r uses the device "fake<r>".
class Registering final : public conformance::TransportFixture {
 public:
  std::string name() const override { return "verbs"; }
  std::unique_ptr<tutti::Transport> create(int rank, bool, const MessageLimits& limits) override {
    Options options;
    options.functions = &Provider::functions();
    options.settings.devices = "=fake" + std::to_string(rank);
    options.limits = limits;
    options.limits.eager = 4096;
    options.register_from = from;
    return verbs::create(options).take();
  }
  static inline std::size_t from = 0;
};

std::unique_ptr<conformance::TransportFixture> make_registering() { return std::make_unique<Registering>(); }

// `Registration` has two ranks. They register the memory of messages of at least `Settings::from` bytes.
class Registration : public testing::Test {
 protected:
  struct Settings {
    std::size_t from = 4096;
    bool windows = true;
    std::size_t memlock = never;
  };
  void start(const Settings& settings) {
    std::vector<provider::DeviceSettings> devices = {provider::ethernet_device("fake0", "10.0.0.1"),
                                                     provider::ethernet_device("fake1", "10.0.0.2")};
    for (provider::DeviceSettings& device : devices) {
      device.windows = settings.windows;
      device.memlock = settings.memlock;
    }
    Registering::from = settings.from;
    provider_.reset();
    provider_ = std::make_unique<Provider>(devices);
    world_ = std::make_unique<World>(&make_registering, 2);
    exchange(1, 8);
    before_ = provider_->record();
  }
  void TearDown() override {
    world_.reset();
    EXPECT_EQ(provider_->record().counts, provider::Counts{});
    EXPECT_THAT(provider_->record().mistakes, testing::IsEmpty());
  }
  Node& from() { return (*world_)[0]; }
  Node& to() { return (*world_)[1]; }
  // Sends a message from rank 0 to rank 1.
  void exchange(std::uint64_t sequence, std::size_t size) {
    Send send(size, collective(sequence), 5);
    Recv recv(size, 0, collective(sequence));
    to().post(recv);
    from().post(1, send);
    ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
    EXPECT_TRUE(recv.holds(5));
  }
  std::uint64_t registrations() {
    return provider_->record().traffic.registrations - before_.traffic.registrations;
  }

  std::unique_ptr<Provider> provider_;
  std::unique_ptr<World> world_;
  Record before_;
};

TEST_F(Registration, LastsAsLongAsTheOperation) {
  start({});
  for (std::uint64_t sequence = 2; sequence < 12; ++sequence) {
    ASSERT_NO_FATAL_FAILURE(exchange(sequence, large));
    EXPECT_EQ(provider_->record().counts.regions, before_.counts.regions) << "memory is still registered";
  }
  EXPECT_EQ(registrations(), 20u);
  EXPECT_EQ(to().counters().bytes_in_place, 10 * large);
  EXPECT_EQ(to().counters().bytes_staged, 0u);
}

TEST_F(Registration, DoesNotHappenForSmallerMessages) {
  start({.from = large + 1});
  exchange(2, large);
  EXPECT_EQ(to().counters().bytes_in_place, 0u);
  EXPECT_EQ(to().counters().bytes_staged, large);
  EXPECT_EQ(registrations(), 1u) << "only the staging chunks are registered";
}

TEST_F(Registration, DoesNotHappenIfTheProgramHasRegistered) {
  start({});
  Send send(large, collective(2), 5);
  Recv recv(large, 0, collective(2));
  const auto sent = from().mesh.add_memory(send.memory).take();
  const auto received = to().mesh.add_memory(recv.memory).take();
  to().post(recv);
  from().post(1, send);
  ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
  EXPECT_EQ(to().counters().bytes_in_place, large);
  EXPECT_EQ(registrations(), 2u);
}

// The process cannot read and write memory of a GPU, so the kernel cannot lock that memory for the card.
TEST_F(Registration, PassesOverMemoryOfAGpu) {
  start({});
  void* const memory = mmap(nullptr, large, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto added = from().mesh.add_memory({static_cast<std::byte*>(memory), large});
  EXPECT_TRUE(added.ok() && added->empty()) << added.status().to_string();
  EXPECT_EQ(registrations(), 0u);
  munmap(memory, large);
}

// The device can lock the memory of a connection and its staging chunks, but not the memory of this message.
TEST_F(Registration, IsLeftOutIfTheDeviceRefuses) {
  start({.memlock = 8 * large});
  exchange(2, 16 * large);
  EXPECT_EQ(to().counters().bytes_in_place, 0u);
  EXPECT_EQ(to().counters().bytes_staged, 16 * large);
}

// A message must not use the registration of another message, since the other message may end first.
TEST_F(Registration, IsNotSharedByMessages) {
  start({});
  Send first(large, collective(2), 5);
  Send second(large, collective(3), 5);
  second.data = first.memory.data();
  Recv to_first(large, 0, collective(2)), to_second(large, 0, collective(3));
  to().post(to_first);
  to().post(to_second);
  from().post(1, first);
  from().post(1, second);
  ASSERT_TRUE(to_first.wait().ok() && to_second.wait().ok() && first.wait().ok() && second.wait().ok());
  EXPECT_TRUE(to_first.holds(5) && to_second.holds(5));
  EXPECT_EQ(registrations(), 4u);
}

// Without memory windows, the rank grants the key of the registration. The key ends with the operation.
TEST_F(Registration, IsAKeyOfItsOwnWithoutWindows) {
  start({.windows = false});
  Send send(large, collective(2), 5);
  Recv recv(large, 0, collective(2));
  to().post(recv);
  from().post(1, send);
  ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
  EXPECT_EQ(to().counters().bytes_in_place, large);
  std::ranges::fill(recv.memory, std::byte{0xee});
  const std::vector<std::byte> then = recv.memory;
  const provider::Write write = provider_->record().last_write;
  provider_->write_as(write, std::vector<std::byte>(64, std::byte{0xbb}));
  EXPECT_TRUE(provider_->is_broken(write.pair));
  EXPECT_TRUE(recv.memory == then);
}

TEST_F(Registration, EndsWithEachOfAThousandCancelledTransfers) {
  for (const bool windows : {true, false}) {
    start({.windows = windows});
    std::minstd_rand random(17);
    int succeeded = 0;
    for (std::uint64_t round = 2; round < 1002; ++round) {
      Send send(64 * 1024, collective(round), 5);
      Recv recv(64 * 1024, 0, collective(round));
      to().post(recv);
      from().post(1, send);
      for (auto spins = random() % 10; spins > 0 && recv.over.load() == 0; --spins)
        (spins % 2 == 0 ? from() : to()).driver.progress();
      to().drive([&] {
        if (recv.over.load() == 0) to().mesh.cancel(recv, conformance::gave_up);
      });
      if (recv.wait().ok()) ++succeeded;
      from().drive([&] {
        if (send.over.load() == 0) from().mesh.cancel(send, 1, conformance::gave_up);
      });
      send.wait();
      // The first message in place makes the first window, so only regions are counted.
      ASSERT_EQ(provider_->record().counts.regions, before_.counts.regions) << "round " << round;
    }
    EXPECT_LT(succeeded, 1000);
    EXPECT_GT(registrations(), 0u);
    if (windows) TearDown();
  }
}

TEST(RegistrationCost, IsInfiniteIfNothingCanBeRegistered) {
  std::vector<provider::DeviceSettings> devices = {provider::ethernet_device("fake0", "10.0.0.1")};
  devices[0].memlock = 64 * 1024;
  Provider library(devices);
  const auto port = usable_ports(Provider::functions(), PortFilter(), {}).take().front();
  EXPECT_EQ(measure_registration(Domain::create(Provider::functions(), port.device).take()), never);
  EXPECT_EQ(library.record().counts.regions, 0);
}

// The provider registers at once, whatever the size.
TEST(RegistrationCost, IsLowOnADeviceThatRegistersFast) {
  Provider library({provider::ethernet_device("fake0", "10.0.0.1")});
  const auto port = usable_ports(Provider::functions(), PortFilter(), {}).take().front();
  EXPECT_LT(measure_registration(Domain::create(Provider::functions(), port.device).take()), never);
  EXPECT_EQ(library.record().counts.regions, 0);
}

}  // namespace
}  // namespace tutti::verbs
