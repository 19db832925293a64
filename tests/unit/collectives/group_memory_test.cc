#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "collectives/run/registration_vote.h"
#include "tests/unit/collectives/board_world.h"

// This file tests that a rank finds its registered memory, and that it checks what other ranks say
// about their memory.
namespace tutti::test {
namespace {

class GroupMemoryTest : public testing::Test {
 protected:
  // Returns the handle of `rank` for an allocation that three ranks share.
  std::shared_ptr<GroupMemory> map(int rank) {
    return std::make_shared<GroupMemory>(std::make_unique<PlainSegment>(memory_, rings_), rank, parts_);
  }

  const std::vector<std::uint64_t> parts_ = {10'000, 0, 4096};
  std::vector<int> rings_ = std::vector<int>(3);
  std::vector<std::byte> memory_ = std::vector<std::byte>(GroupMemory::segment_bytes(parts_));
};

TEST_F(GroupMemoryTest, PartsAreDisjointAndEqualEverywhere) {
  const auto first = map(0);
  const auto last = map(2);
  EXPECT_EQ(first->data(), last->part(0));
  EXPECT_EQ(first->part(2), last->data());
  EXPECT_LE(first->part(0) + first->bytes(0), first->part(2));
  EXPECT_LE(first->part(2) + first->bytes(2), memory_.data() + memory_.size());
  EXPECT_EQ(last->bytes(), 4096u);
}

TEST_F(GroupMemoryTest, BuffersAreFoundWhereAllOfThemIsInside) {
  AllocationTable table;
  table.add(map(0));
  const auto second = map(0);
  std::byte* const data = second->data();
  const Place whole = table.find(data, 10'000);
  EXPECT_EQ(whole.allocation, 1u);
  EXPECT_EQ(whole.offset, 0u);
  EXPECT_EQ(whole.bytes, 10'000u);
  EXPECT_EQ(table.find(data + 1, 9'999).offset, 1u);
  EXPECT_EQ(table.find(data + 1, 10'000).allocation, 0u);
  EXPECT_EQ(table.find(data - 1, 10).allocation, 0u);
  EXPECT_EQ(table.find(data + 10'001, 0).allocation, 0u);
  EXPECT_EQ(table.find(data, ~std::uint64_t{0}).allocation, 0u);
  EXPECT_EQ(table.find(memory_.data() + memory_.size() - 4096, 10).allocation, 0u);  // memory of another rank
}

TEST_F(GroupMemoryTest, PlacesThatCannotBeAreNot) {
  AllocationTable table;
  table.add(map(1));
  EXPECT_EQ(table.resolve(0, {1, 9'000, 1'000}), map(1)->part(0) + 9'000);
  EXPECT_EQ(table.resolve(0, {1, 9'001, 1'000}), nullptr);
  EXPECT_EQ(table.resolve(0, {2, 0, 1}), nullptr);
  EXPECT_EQ(table.resolve(1, {1, 0, 1}), nullptr);
  constexpr std::uint64_t most = ~std::uint64_t{0};
  EXPECT_EQ(table.resolve(0, {1, most, 2}), nullptr);
  EXPECT_EQ(table.resolve(0, {1, 2, most}), nullptr);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const Place place{random() % 3, random() >> random() % 64, random() >> random() % 64};
    const int rank = static_cast<int>(random() % 3);
    if (const std::byte* found = table.resolve(rank, place)) {
      ASSERT_EQ(place.allocation, 1u);
      ASSERT_LE(place.offset + place.bytes, parts_[static_cast<std::size_t>(rank)]);
      ASSERT_EQ(found, map(1)->part(rank) + place.offset);
    }
  }
}

TEST_F(GroupMemoryTest, StaysUntilAllHaveLetGo) {
  AllocationTable table;
  const auto mine = map(0);
  table.add(mine);
  mine->release();
  map(1)->release();
  table.add(map(0));  // also drops unused mappings
  EXPECT_NE(table.resolve(0, {1, 0, 1}), nullptr);
  map(2)->release();
  EXPECT_TRUE(mine->released_by_all());
  table.add(std::make_shared<GroupMemory>(std::unique_ptr<SharedSegment>(), 0, parts_));
  EXPECT_EQ(table.resolve(0, {1, 0, 1}), nullptr);
}

TEST_F(GroupMemoryTest, StaysAsLongAsThisRankUsesItWhateverOthersSay) {
  AllocationTable table;
  const auto mine = map(0);
  table.add(mine);
  for (int i = 0; i < 5; ++i) map(1)->release();
  table.drop_unused();
  EXPECT_NE(table.resolve(0, {1, 0, 1}), nullptr);
  EXPECT_TRUE(mine->release());
  table.drop_unused();
  EXPECT_EQ(table.resolve(0, {1, 0, 1}), nullptr);
}

TEST(Shortage, CountsWhoSharesAHostOrAControlGroup) {
  constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  const Topology topology = Topology::regular(2, 2);
  // On the first host, each rank has its own container. On the second host, both ranks share a container.
  std::vector<AllocationVote> votes = {
      {50, {100, 60, 1}}, {50, {100, 60, 2}}, {20, {100, 60, 1}}, {40, {100, 60, 1}}};
  EXPECT_FALSE(find_shortage(votes, topology));
  votes[1].bytes = 51;
  auto shortage = find_shortage(votes, topology);
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->rank, 0);
  EXPECT_EQ(shortage->wanted, 101u);
  EXPECT_EQ(shortage->limit, 100u);
  votes[1].bytes = 0;
  votes[3].bytes = 41;
  shortage = find_shortage(votes, topology);
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->rank, 2);
  EXPECT_EQ(shortage->wanted, 61u);
  EXPECT_EQ(shortage->limit, 60u);
  // Even if no limit on memory is known, the address space is limited.
  for (AllocationVote& vote : votes) vote = {none / 8, {none, none, 0}};
  EXPECT_FALSE(find_shortage(votes, topology));
  for (AllocationVote& vote : votes) vote.bytes = none;
  EXPECT_TRUE(find_shortage(votes, topology));
}

TEST_F(GroupMemoryTest, OrdinaryMemoryIsZeroedToo) {
  const GroupMemory memory(std::unique_ptr<SharedSegment>(), 2, parts_);
  EXPECT_FALSE(memory.shared());
  for (std::size_t i = 0; i < memory.bytes(); ++i) ASSERT_EQ(memory.data()[i], std::byte{0});
}

// Rank 1 writes its vote itself, and may vote for a buffer that is shorter than the call needs.
// Rank 0 must not accept such a vote, since it would access memory beyond the buffer's end.
TEST(RegistrationVotes, ForBuffersOfOtherSizesDoNotCount) {
  const std::vector<std::uint64_t> parts = {8192, 8192};
  std::vector<int> rings(2);
  std::vector<std::byte> memory(GroupMemory::segment_bytes(parts));
  AllocationTable table;
  const auto own = std::make_shared<GroupMemory>(std::make_unique<PlainSegment>(memory, rings), 0, parts);
  table.add(own);
  struct alignas(4096) Page {
    std::byte bytes[4096];
  };
  std::vector<Page> pages(Board::segment_bytes(2, 0) / sizeof(Page) + 1);
  const auto shared = std::as_writable_bytes(std::span(pages));
  Board board(std::make_unique<PlainSegment>(shared, rings), 0, 2, 0);
  RegistrationVote vote(table, 2);
  RunBinding binding;
  binding.input = own->data();
  binding.output = own->data() + 4096;
  const Fingerprint call{.kind = CollectiveKind::all_reduce};
  const RegistrationVote::Sizes sizes{4096, 4096};
  const auto agree = [&](const Place& input, const Place& output) {
    const Place shown[] = {input, output};
    vote.show(board, 1, binding, sizes);
    std::memcpy(board.slot(1, 1).payload, shown, sizeof shown);
    return vote.is_unanimous(board, 1, call, sizes);
  };
  EXPECT_TRUE(agree({1, 0, 4096}, {1, 4096, 4096}));
  EXPECT_FALSE(agree({1, 8184, 8}, {1, 4096, 4096}));
  EXPECT_FALSE(agree({1, 0, 4096}, {1, 8192, 0}));
  EXPECT_FALSE(agree({1, 0, 4096}, {1, 4097, 4096}));
  EXPECT_FALSE(agree({0, 0, 4096}, {1, 4096, 4096}));
}

}  // namespace
}  // namespace tutti::test
