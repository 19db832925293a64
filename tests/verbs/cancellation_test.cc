// Cancels large transfers while a card writes. These tests also run over Soft-RoCE.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/channel_world.h"
#include "tests/verbs/watched_library.h"
#include "transport/verbs/factory.h"

namespace tutti::verbs {
namespace {

using conformance::collective;
using conformance::Node;
using conformance::Recv;
using conformance::Send;
using conformance::World;

// Rank 0 uses the device rxe0, and rank 1 the device rxe1.
class TwoCards final : public conformance::TransportFixture {
 public:
  std::string name() const override { return "verbs"; }
  std::unique_ptr<tutti::Transport> create(int rank, bool, const MessageLimits& limits) override {
    Options options;
    options.functions = &library->functions();
    options.settings.devices = "=rxe" + std::to_string(rank);
    options.limits = limits;
    options.register_from = 1;
    return verbs::create(options).take();
  }

  static inline test::WatchedLibrary* library = nullptr;
};

std::unique_ptr<conformance::TransportFixture> make_two_cards() { return std::make_unique<TwoCards>(); }

// Each round cancels at a random moment: before the grant, while the card writes, or afterwards. Once the
// receive has ended, nothing may touch its memory. Returns how many regions were registered.
std::uint64_t cancel_a_thousand(bool registered) {
  constexpr std::size_t bytes = 256 * 1024;
  test::WatchedLibrary library;
  TwoCards::library = &library;
  World world(&make_two_cards, 2);
  Node &from = world[0], &to = world[1];
  world.each([](Node& node) {  // connects the two
    Send hello(8, collective(2000), 1);
    Recv answer(8, 1 - node.mesh.rank(), collective(2000));
    node.post(answer);
    node.post(1 - node.mesh.rank(), hello);
    EXPECT_TRUE(answer.wait().ok() && hello.wait().ok());
  });
  Send send(bytes, collective(0), 1);
  std::vector<std::byte> untouched(bytes, std::byte{0xee});
  std::vector<std::unique_ptr<RegisteredMemory>> sent, received;
  if (registered) sent = from.mesh.add_memory(send.memory).take();
  const test::Usage before = library.usage();
  std::minstd_rand random(17);
  int succeeded = 0;
  for (std::uint64_t round = 1; round <= 1000; ++round) {
    Send again(0, collective(round), 0);
    again.data = send.memory.data();
    again.header.bytes = bytes;
    Recv recv(bytes, 0, collective(round));
    if (registered) received = to.mesh.add_memory(recv.memory).take();
    to.post(recv);
    from.post(1, again);
    for (auto spins = random() % 10; spins > 0 && recv.over.load() == 0; --spins)
      (spins % 2 == 0 ? from : to).driver.progress();
    to.drive([&] {
      if (recv.over.load() == 0) to.mesh.cancel(recv, conformance::gave_up);
    });
    if (recv.wait().ok()) ++succeeded;
    std::ranges::copy(untouched, recv.memory.begin());
    // If the receive was cancelled before the message was announced, the send still waits for another
    // receive.
    from.drive([&] {
      if (again.over.load() == 0) from.mesh.cancel(again, 1, conformance::gave_up);
    });
    again.wait();
    EXPECT_EQ(std::memcmp(recv.memory.data(), untouched.data(), bytes), 0) << "round " << round;
    received.clear();
    const test::Usage now = library.usage();
    EXPECT_EQ(now.regions, before.regions) << "round " << round;
    EXPECT_EQ(now.pairs, before.pairs) << "round " << round;
  }
  EXPECT_GT(succeeded, 0);
  EXPECT_LT(succeeded, 1000);
  return library.usage().registrations - before.registrations;
}

// Each receive registers its memory, and nothing else is registered.
TEST(VerbsCancellation, AThousandTransfersLeaveMemoryAlone) { EXPECT_EQ(cancel_a_thousand(true), 1000u); }

// The memory is registered for each transfer, and deregistered when the transfer has ended.
TEST(VerbsCancellation, AThousandTransfersLeaveNothingRegistered) {
  EXPECT_GT(cancel_a_thousand(false), 100u);
}

}  // namespace
}  // namespace tutti::verbs
