// Tests that all code above a channel waits for a cancelled message that ends late.
#include <deque>
#include <random>
#include <vector>

#include "tests/conformance/inproc_fixture.h"
#include "tests/support/poisoned.h"

namespace tutti::conformance {
namespace {

constexpr MakeFixture late_fixtures[] = {&make_inproc_fixture<1>, &make_inproc_fixture<10>,
                                         &make_inproc_fixture<1000>};

INSTANTIATE_TEST_SUITE_P(Late, ChannelConformance, ::testing::ValuesIn(late_fixtures));
INSTANTIATE_TEST_SUITE_P(Late, ChannelFailures, ::testing::ValuesIn(late_fixtures));

constexpr std::size_t large = 200'000;

// `Transfer` is one large message from rank 0 to rank 1.
struct Transfer {
  explicit Transfer(const MessageTag& tag) : send(large, tag, 1), recv(large, 0, tag) {}
  // Cancels the send (end 0) or the receive (end 1) if it still runs. Returns whether it still ran.
  bool cancel(World& world, int end) {
    bool running = false;
    world[end].drive([&] {
      running = (end == 0 ? send.over.load() : recv.over.load()) == 0;
      if (running) end == 0 ? world[0].mesh.cancel(send, 1, gave_up) : world[1].mesh.cancel(recv, gave_up);
    });
    return running;
  }
  Send send;
  Recv recv;
};

class LateCancel : public ::testing::TestWithParam<MakeFixture> {};

// Messages are cancelled at one end while their bytes move, and a little later at the other end.
// After the operations at both ends have ended, the receive's memory no longer changes, and the
// send's memory is not read.
TEST_P(LateCancel, LeavesMemoryAlone) {
  constexpr std::uint64_t rounds = 10;
  constexpr std::uint32_t at_once = 100;
  World world(GetParam(), 2, {.background = false, .limits = tiny});
  const auto progress = [&](unsigned passes) {
    for (unsigned i = 0; i < passes; ++i) world[static_cast<int>(i % 2)].driver.progress();
  };
  std::mt19937 random(7);
  std::uint64_t cancelled = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::deque<Transfer> transfers;
    for (std::uint32_t i = 0; i < at_once; ++i) {
      Transfer& transfer = transfers.emplace_back(collective(round, i));
      world[1].post(transfer.recv);
      world[0].post(1, transfer.send);
    }
    progress(random() % 100);
    const int first = static_cast<int>(random() % 2);
    for (const int end : {first, 1 - first}) {
      for (Transfer& transfer : transfers) cancelled += transfer.cancel(world, end) ? 1 : 0;
    }
    std::deque<std::vector<std::byte>> contents;
    std::deque<test::Poisoned> untouchable;
    for (Transfer& transfer : transfers) {
      transfer.send.wait();
      transfer.recv.wait();
      EXPECT_EQ(transfer.send.completions + transfer.recv.completions, 2);
      contents.push_back(transfer.recv.memory);
      untouchable.emplace_back(transfer.send.memory);
      untouchable.emplace_back(transfer.recv.memory);
    }
    Transfer after(collective(rounds + round));
    world[1].post(after.recv);
    world[0].post(1, after.send);
    const Deadline limit = patience();
    while ((after.recv.over.load() == 0 || after.send.over.load() == 0) && !limit.expired()) progress(2);
    ASSERT_TRUE(after.recv.wait().ok() && after.send.wait().ok());
    untouchable.clear();
    for (std::size_t i = 0; i < at_once; ++i) EXPECT_EQ(transfers[i].recv.memory, contents[i]);
  }
  EXPECT_GT(cancelled, rounds * at_once) << "too many messages ended before they could be cancelled";
}

INSTANTIATE_TEST_SUITE_P(Late, LateCancel, ::testing::ValuesIn(late_fixtures));

}  // namespace
}  // namespace tutti::conformance
