// Tests that a peer can write only where and as long as it was permitted to (docs/seams/grants.md).
#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/channel_world.h"
#include "tests/verbs/provider/provider.h"
#include "transport/verbs/factory.h"

namespace tutti::verbs {
namespace {

using conformance::collective;
using conformance::Node;
using conformance::Recv;
using conformance::Send;
using conformance::World;
using provider::Provider;
using testing::HasSubstr;

constexpr std::size_t bytes = 1 << 20;

// Rank r uses the device "fake<r>".
class OneDeviceEach final : public conformance::TransportFixture {
 public:
  std::string name() const override { return "verbs"; }
  std::unique_ptr<tutti::Transport> create(int rank, bool, const MessageLimits& limits) override {
    Options options;
    options.functions = &Provider::functions();
    options.settings.devices = "=fake" + std::to_string(rank);
    options.limits = limits;
    options.register_from = std::numeric_limits<std::size_t>::max();
    options.limits.eager = 4096;  // so that messages of 16 KiB are large
    return verbs::create(options).take();
  }
};

// `Grants` has two ranks. Rank 0 sends, and rank 1 receives into parts of a registered region.
class Grants : public testing::Test {
 protected:
  void SetUp() override { start(true); }
  void TearDown() override {
    registered_.clear();
    world_.reset();
    EXPECT_EQ(provider_->record().counts, provider::Counts{});
    EXPECT_THAT(provider_->record().mistakes, testing::IsEmpty());
  }
  void start(bool windows) {
    std::vector<provider::DeviceSettings> devices = {provider::ethernet_device("fake0", "10.0.0.1"),
                                                     provider::ethernet_device("fake1", "10.0.0.2")};
    for (provider::DeviceSettings& device : devices) device.windows = windows;
    registered_.clear();
    world_.reset();
    provider_.reset();
    provider_ = std::make_unique<Provider>(devices);
    world_ = std::make_unique<World>(
        [] { return std::unique_ptr<conformance::TransportFixture>(std::make_unique<OneDeviceEach>()); }, 2);
    registered_ = to().mesh.add_memory(region_).take();
  }
  Node& from() { return (*world_)[0]; }
  Node& to() { return (*world_)[1]; }
  // Makes the receive use the region, `offset` bytes from its beginning.
  void point(Recv& recv, std::size_t offset) {
    recv.bytes = bytes;
    recv.sink.out = region_.data() + offset;
  }
  // Sends a message into the region.
  void exchange(std::uint64_t sequence, std::size_t offset) {
    Send send(bytes, collective(sequence), 5);
    Recv recv(0, 0, collective(sequence));
    point(recv, offset);
    to().post(recv);
    from().post(1, send);
    ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
  }
  // Makes rank 0 write as a hostile program would, and expects that both ranks lose their peer. Returns the
  // error text of rank 0.
  std::string expect_refusal(const provider::Write& write) {
    provider_->write_as(write, std::vector<std::byte>(64, std::byte{0xbb}));
    provider_->release();
    if (!provider_->is_broken(write.pair)) return "the write has succeeded";
    Recv at_0(8, 1, collective(1000)), at_1(8, 0, collective(1000));
    from().post(at_0);
    to().post(at_1);
    EXPECT_FALSE(at_0.wait().ok());
    EXPECT_FALSE(at_1.wait().ok());
    return at_0.status.message();
  }
  bool is_untouched(std::size_t offset, std::size_t count) const {
    const auto part = std::span(region_).subspan(offset, count);
    return std::ranges::all_of(part, [](std::byte each) { return each == std::byte{0xee}; });
  }

  std::unique_ptr<Provider> provider_;
  std::unique_ptr<World> world_;
  std::vector<std::byte> region_ = std::vector<std::byte>(4 * bytes, std::byte{0xee});
  std::vector<std::unique_ptr<RegisteredMemory>> registered_;
};

TEST_F(Grants, AKeyOfAnEarlierOperationPermitsNothing) {
  exchange(2, bytes);
  EXPECT_EQ(to().counters().bytes_in_place, bytes);
  std::ranges::fill(region_, std::byte{0xee});
  EXPECT_THAT(expect_refusal(provider_->record().last_write), HasSubstr("remote access error"));
  EXPECT_TRUE(is_untouched(0, region_.size()));
}

TEST_F(Grants, AKeyPermitsItsRangeOnly) {
  Send send(bytes, collective(2), 5);
  Recv recv(0, 0, collective(2));
  point(recv, bytes);
  provider_->hold_writes();
  to().post(recv);
  from().post(1, send);
  ASSERT_TRUE(from().until([&] { return provider_->record().traffic.writes > 0; }));
  provider::Write write = provider_->record().last_write;
  write.address = reinterpret_cast<std::uintptr_t>(region_.data()) + 2 * bytes;
  EXPECT_THAT(expect_refusal(write), HasSubstr("remote access error"));
  EXPECT_FALSE(recv.wait().ok());
  EXPECT_FALSE(send.wait().ok());
  EXPECT_TRUE(is_untouched(0, bytes));
  EXPECT_TRUE(is_untouched(2 * bytes, 2 * bytes));
}

TEST_F(Grants, AReceiveEndsOnlyOnceItsKeyIsRevoked) {
  Send send(bytes, collective(2), 5);
  Recv recv(0, 0, collective(2));
  point(recv, 0);
  provider_->hold_invalidations();
  to().post(recv);
  from().post(1, send);
  ASSERT_TRUE(send.wait().ok());
  ASSERT_TRUE(to().until([&] { return provider_->record().traffic.invalidations > 0; }));
  for (int i = 0; i < 100; ++i) to().driver.progress();
  EXPECT_EQ(recv.completions, 0);
  provider_->release();
  EXPECT_TRUE(recv.wait().ok());
}

TEST_F(Grants, ACancelledReceiveRevokesItsKey) {
  exchange(2, 0);
  Send send(bytes, collective(3), 5);
  Recv recv(0, 0, collective(3));
  point(recv, bytes);
  provider_->hold_writes();
  const std::uint64_t before = provider_->record().traffic.writes;
  to().post(recv);
  from().post(1, send);
  ASSERT_TRUE(from().until([&] { return provider_->record().traffic.writes > before; }));
  const provider::Write write = provider_->record().last_write;
  to().drive([&] { to().mesh.cancel(recv, conformance::gave_up); });
  provider_->release();
  recv.wait();
  send.wait();
  std::ranges::fill(region_, std::byte{0xee});
  EXPECT_THAT(expect_refusal(write), HasSubstr("remote access error"));
  EXPECT_TRUE(is_untouched(0, region_.size()));
}

// A connection has 16 windows. Further messages wait for one, and are not copied.
TEST_F(Grants, ManyMessagesShareTheWindows) {
  constexpr std::size_t count = 50, part = 16 * 1024;
  std::deque<Send> sends;
  std::deque<Recv> recvs;
  for (std::size_t i = 0; i < count; ++i) {
    sends.emplace_back(part, collective(2 + i), static_cast<int>(i));
    Recv& recv = recvs.emplace_back(0, 0, collective(2 + i));
    recv.bytes = part;
    recv.sink.out = region_.data() + i * part;
    to().post(recv);
  }
  for (Send& send : sends) from().post(1, send);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(recvs[i].wait().ok() && sends[i].wait().ok());
    EXPECT_TRUE(std::ranges::equal(sends[i].memory, std::span(region_).subspan(i * part, part)));
  }
  EXPECT_EQ(to().counters().bytes_in_place, count * part);
  EXPECT_EQ(to().counters().bytes_staged, 0u);
  EXPECT_EQ(provider_->record().traffic.binds, count);
  EXPECT_EQ(provider_->record().traffic.invalidations, count);
}

// A message that waits for a window can be cancelled like any other.
TEST_F(Grants, AMessageWithoutAWindowCanBeCancelled) {
  constexpr std::size_t count = 20, part = 64 * 1024;
  std::deque<Send> sends;
  std::deque<Recv> recvs;
  provider_->hold_writes();
  for (std::size_t i = 0; i < count; ++i) {
    sends.emplace_back(part, collective(2 + i), static_cast<int>(i));
    Recv& recv = recvs.emplace_back(0, 0, collective(2 + i));
    recv.bytes = part;
    recv.sink.out = region_.data() + i * part;
    to().post(recv);
  }
  for (Send& send : sends) from().post(1, send);
  ASSERT_TRUE(to().until([&] { return provider_->record().traffic.binds == 16; }));
  to().drive([&] {
    for (Recv& recv : recvs) to().mesh.cancel(recv, conformance::gave_up);
  });
  provider_->release();
  for (Recv& recv : recvs) recv.wait();
  for (Send& send : sends) send.wait();
  exchange(1000, 2 * bytes);
}

// Without windows, the key of a region would last as long as the region. So peers get no such key.
TEST_F(Grants, WithoutWindowsMessagesAreStaged) {
  start(false);
  exchange(2, 0);
  EXPECT_EQ(to().counters().bytes_in_place, 0u);
  EXPECT_EQ(to().counters().bytes_staged, bytes);
  EXPECT_EQ(provider_->record().traffic.binds, 0u);
  std::ranges::fill(region_, std::byte{0xee});
  provider::Write write = provider_->record().last_write;
  write.address = reinterpret_cast<std::uintptr_t>(region_.data());
  EXPECT_THAT(expect_refusal(write), HasSubstr("remote access error"));
  EXPECT_TRUE(is_untouched(0, region_.size()));
}

}  // namespace
}  // namespace tutti::verbs
