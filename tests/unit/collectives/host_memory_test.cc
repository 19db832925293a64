// Tests how ranges of a host's memory are allocated and freed. Most tests play all ranks of a host
// on one thread.
#include "collectives/group/host_memory.h"

#include <algorithm>
#include <barrier>
#include <deque>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/collectives/board_world.h"

namespace tutti {
namespace {

constexpr std::uint64_t first_bytes = 100'000, room = 3'000'000, bytes = 50'000;
constexpr int size = 3;

struct Losses final : SharedSegmentEvents {
  std::vector<int> members;
  void on_member_lost(int member, const Status&) override { members.push_back(member); }
};

std::vector<int> all() { return {0, 1, 2}; }

// Three ranks share one segment.
class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemoryTest() : driver_({.background = false}), mesh_(driver_, {}), desk_(driver_, mesh_) {
    for (int rank = 0; rank < size; ++rank) {
      HostMemory& host = hosts_.emplace_back(desk_);
      ShareRequest request;
      host.prepare(request, all(), rank, first_bytes, room);
      if (memory_.empty()) memory_.resize(request.bytes / sizeof(Page) + 1);
      const auto part = std::as_writable_bytes(std::span(memory_)).first(request.bytes);
      host.open(std::make_unique<test::PlainSegment>(part, rings_));
    }
  }
  std::unique_ptr<SharedSegment> join(int rank, std::uint64_t place, const std::vector<int>& ranks) {
    const auto own = std::ranges::find(ranks, rank) - ranks.begin();
    return host(rank)
        .join(place, ranks, static_cast<int>(own), bytes, losses_[static_cast<std::size_t>(rank)])
        .take();
  }
  std::vector<std::unique_ptr<SharedSegment>> join_all(std::uint64_t place) {
    std::vector<std::unique_ptr<SharedSegment>> joined;
    for (int rank = 0; rank < size; ++rank) joined.push_back(join(rank, place, all()));
    return joined;
  }
  HostMemory& host(int rank) { return hosts_[static_cast<std::size_t>(rank)]; }
  static std::uint64_t needed() { return HostMemory::range_bytes(size, bytes); }
  static bool is_zero(const SharedSegment& range) {
    return std::ranges::all_of(range.memory(), [](std::byte each) { return each == std::byte{0}; });
  }

  struct alignas(64 * 1024) Page {
    std::byte bytes[64 * 1024];
  };
  Driver driver_;
  Mesh mesh_;
  ControlDesk desk_;
  std::vector<Page> memory_;
  std::vector<int> rings_ = std::vector<int>(size);
  std::vector<Losses> losses_ = std::vector<Losses>(size);
  std::deque<HostMemory> hosts_;
};

TEST_F(HostMemoryTest, AllMembersOfARangeSeeTheSameBytes) {
  const auto joined = join_all(*host(1).take(needed()));
  for (const auto& range : joined) {
    EXPECT_GE(range->memory().size(), bytes);
    EXPECT_TRUE(is_zero(*range));
  }
  joined[0]->memory()[7] = std::byte{42};
  EXPECT_EQ(joined[2]->memory()[7], std::byte{42});
}

TEST_F(HostMemoryTest, RangesDoNotOverlap) {
  std::vector<std::uint64_t> places = {host(0).first_place()};
  for (int rank = 0; rank < size; ++rank) {
    while (const auto place = host(rank).take(needed())) places.push_back(*place);
  }
  EXPECT_GT(places.size(), 3u);
  std::ranges::sort(places);
  for (std::size_t i = 1; i < places.size(); ++i) EXPECT_GE(places[i] - places[i - 1], needed());
}

TEST_F(HostMemoryTest, AMemberRingsTheRightRank) {
  const std::uint64_t place = *host(0).take(needed());
  const auto joined = join(2, place, {2, 0});
  joined->bell(1).ring();
  joined->bell(0).ring();
  EXPECT_EQ(rings_, (std::vector<int>{1, 0, 1}));
}

TEST_F(HostMemoryTest, ARangeIsZeroWhenItIsHandedOutAgain) {
  const std::int64_t before = host(1).room();
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t place = *host(1).take(needed());
    auto joined = join_all(place);
    EXPECT_TRUE(is_zero(*joined[0]));
    std::ranges::fill(joined[0]->memory(), std::byte{0xff});
    joined[1].reset();
    joined[0].reset();
    EXPECT_LT(host(1).room(), before);  // rank 2 still uses the range
    joined[2].reset();
    EXPECT_EQ(host(1).room(), before);
  }
}

TEST_F(HostMemoryTest, ARangeThatNobodyJoinsIsTakenBack) {
  const std::int64_t before = host(0).room();
  host(0).cancel(*host(0).take(needed()));
  EXPECT_EQ(host(0).room(), before);
}

// Every rank can write into the whole segment. In this test, a rank marks a range as free before any rank has
// joined the range.
TEST_F(HostMemoryTest, ARangeThatAMemberMarksAsFreeIsTakenBackOnce) {
  const std::int64_t before = host(0).room();
  const std::uint64_t place = *host(0).take(needed());
  const auto all_memory = std::as_writable_bytes(std::span(memory_));
  SharedRange::head_of(all_memory.subspan(place)).reusable.store(1);
  all_memory.front() = std::byte{1};  // this byte counts rank 0's ranges that are free again
  EXPECT_EQ(host(0).room(), before);
  host(0).cancel(place);
  EXPECT_EQ(host(0).room(), before);
  const std::uint64_t first = *host(0).take(needed());
  EXPECT_NE(first, *host(0).take(needed()));
}

// A range may be allocated again after all ranks have left it, even while some of them are still in the
// destructor of their `SharedSegment`.
TEST_F(HostMemoryTest, MembersThatLeaveAtTheSameTimeDoNotTouchTheNextRange) {
  const std::int64_t before = host(0).room();
  std::barrier<> start(size);
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t place = *host(0).take(needed());
    auto joined = join_all(place);
    std::vector<std::thread> members;
    for (auto& range : joined) {
      members.emplace_back([&] {
        start.arrive_and_wait();
        range.reset();
      });
    }
    while (host(0).room() != before) std::this_thread::yield();
    ASSERT_EQ(*host(0).take(needed()), place);
    const auto next = join(0, place, {0});
    std::ranges::fill(next->memory(), std::byte{0xff});
    for (std::thread& member : members) member.join();
    EXPECT_TRUE(std::ranges::all_of(next->memory(), [](std::byte each) { return each == std::byte{0xff}; }));
  }
}

// A rank that counts as lost may still be alive, and may write again later. Its writes must not reach memory
// of another communicator.
TEST_F(HostMemoryTest, ARangeOfALostRankIsFreedButNotHandedOutAgain) {
  const std::uint64_t place = *host(0).take(needed());
  auto joined = join_all(place);
  std::ranges::fill(joined[2]->memory(), std::byte{0xff});
  for (const int rank : {0, 1}) host(rank).on_member_lost(2, Status(Code::peer_lost, "killed", 2));
  joined[0].reset();
  EXPECT_FALSE(is_zero(*joined[1]));
  joined[1].reset();
  EXPECT_TRUE(is_zero(*joined[2]));
  while (const auto other = host(0).take(needed())) EXPECT_NE(*other, place);
  joined[2].reset();
}

TEST_F(HostMemoryTest, ALossIsReportedToTheRangesThatContainTheRank) {
  const auto pair = join(0, *host(0).take(needed()), {1, 0});
  host(0).on_member_lost(2, Status(Code::peer_lost, "killed", 2));
  EXPECT_TRUE(losses_[0].members.empty());
  host(0).on_member_lost(1, Status(Code::peer_lost, "killed", 1));
  EXPECT_EQ(losses_[0].members, std::vector<int>{0});  // rank 1 of the host is rank 0 in `pair`
}

// The places of ranges come from other ranks, so this rank must check them.
TEST_F(HostMemoryTest, ImpossiblePlacesAreRefused) {
  const std::uint64_t place = *host(0).take(needed());
  const std::uint64_t last = memory_.size() * sizeof(Page);
  for (const std::uint64_t bad : {std::uint64_t{0}, place + 1, place - 65536, last - 2 * sizeof(Page), last,
                                  std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    const auto joined = host(1).join(bad, all(), 1, bytes, losses_[1]);
    EXPECT_EQ(joined.status().code(), Code::protocol_error) << bad;
  }
  EXPECT_EQ(host(1).join(host(1).first_place(), all(), 1, 2 * first_bytes, losses_[1]).status().code(),
            Code::protocol_error);
}

TEST_F(HostMemoryTest, RanksThatDoNotShareIt) {
  EXPECT_TRUE(host(0).is_shared_by(all()));
  EXPECT_FALSE(host(0).is_shared_by(std::vector<int>{0, 3}));
  HostMemory closed(desk_);
  EXPECT_FALSE(closed.is_shared_by(all()));
  EXPECT_EQ(closed.room(), -1);
  EXPECT_EQ(closed.take(bytes), std::nullopt);
}

}  // namespace
}  // namespace tutti
