// Cancels large transfers while a card writes. These tests also run over Soft-RoCE.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/channel_world.h"
#include "tests/verbs/tested_library.h"
#include "transport/verbs/factory.h"

namespace tutti::verbs {
namespace {

using conformance::collective;
using conformance::Node;
using conformance::Recv;
using conformance::Send;
using conformance::World;

// `CountedLibrary` is the library under test. It counts the regions that are registered.
class CountedLibrary {
 public:
  CountedLibrary() : functions_(library_.functions()) {
    real = &library_.functions();
    functions_.reg_mr = [](ibv_pd* domain, void* address, std::size_t bytes, int access) {
      ibv_mr* const region = (*real->reg_mr)(domain, address, bytes, access);
      if (region != nullptr) ++regions, ++registrations;
      return region;
    };
    functions_.dereg_mr = [](ibv_mr* region) {
      const int error = real->dereg_mr(region);
      if (error == 0) --regions;
      return error;
    };
  }
  const Functions& functions() const { return functions_; }

  static inline std::atomic<int> regions = 0;        // the regions that exist
  static inline std::atomic<int> registrations = 0;  // all registrations so far

 private:
  static inline const Functions* real = nullptr;
  test::TestedLibrary library_;
  Functions functions_;
};

// Rank 0 uses the device rxe0, and rank 1 the device rxe1.
class TwoCards final : public conformance::TransportFixture {
 public:
  std::string name() const override { return "verbs"; }
  std::unique_ptr<tutti::Transport> create(int rank, bool, const MessageLimits& limits) override {
    Options options;
    options.functions = &library_.functions();
    options.settings.devices = "=rxe" + std::to_string(rank);
    options.limits = limits;
    options.register_from = 1;
    return verbs::create(options).take();
  }

 private:
  CountedLibrary library_;
};

std::unique_ptr<conformance::TransportFixture> make_two_cards() { return std::make_unique<TwoCards>(); }

// Each round cancels at a random moment: before the grant, while the card writes, or afterwards. Once the
// receive has ended, nothing may touch its memory.
void cancel_a_thousand(bool registered) {
  constexpr std::size_t bytes = 256 * 1024;
  World world(&make_two_cards, 2);
  Node &from = world[0], &to = world[1];
  world.each([](Node& node) {  // connects the two
    Send hello(8, collective(2000), 1);
    Recv answer(8, 1 - node.mesh.rank(), collective(2000));
    node.post(answer);
    node.post(1 - node.mesh.rank(), hello);
    ASSERT_TRUE(answer.wait().ok() && hello.wait().ok());
  });
  Send send(bytes, collective(0), 1);
  std::vector<std::byte> untouched(bytes, std::byte{0xee});
  std::vector<std::unique_ptr<RegisteredMemory>> sent, received;
  if (registered) sent = from.mesh.add_memory(send.memory).take();
  const int before = CountedLibrary::regions;
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
    EXPECT_EQ(CountedLibrary::regions, before) << "round " << round;
  }
  EXPECT_GT(succeeded, 0);
  EXPECT_LT(succeeded, 1000);
}

TEST(VerbsCancellation, AThousandTransfersLeaveMemoryAlone) { cancel_a_thousand(true); }

// The memory is registered for each transfer, and deregistered when the transfer has ended.
TEST(VerbsCancellation, AThousandTransfersLeaveNothingRegistered) {
  const int before = CountedLibrary::registrations;
  cancel_a_thousand(false);
  EXPECT_GT(CountedLibrary::registrations, before + 100);
}

}  // namespace
}  // namespace tutti::verbs
