#include "collectives/run/arena.h"

#include <vector>

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Arena, HandsOutEachByteOnce) {
  Arena arena(1000, 100);
  EXPECT_EQ(arena.take(60), 1000u);
  EXPECT_EQ(arena.largest(), 40u);
  EXPECT_EQ(arena.take(60), std::nullopt);
  EXPECT_EQ(arena.take(40), 1060u);
  EXPECT_EQ(arena.largest(), 0u);
  EXPECT_EQ(arena.take(1), std::nullopt);
}

TEST(Arena, HandsOutAgainWhatIsGivenBack) {
  Arena arena(0, 100);
  for (int i = 0; i < 10; ++i) arena.take(10);
  arena.give_back(30, 10);
  EXPECT_EQ(arena.largest(), 10u);
  EXPECT_EQ(arena.take(10), 30u);
}

// Adjacent holes become one hole, whatever the order in which they appear.
TEST(Arena, JoinsHoles) {
  const std::vector<std::vector<std::uint64_t>> orders = {{0, 10, 20}, {0, 20, 10}, {10, 0, 20},
                                                          {10, 20, 0}, {20, 0, 10}, {20, 10, 0}};
  for (const std::vector<std::uint64_t>& order : orders) {
    Arena arena(0, 30);
    for (int i = 0; i < 3; ++i) arena.take(10);
    for (const std::uint64_t offset : order) arena.give_back(offset, 10);
    EXPECT_EQ(arena.largest(), 30u);
    EXPECT_EQ(arena.take(30), 0u);
  }
}

TEST(Arena, MayBeEmpty) {
  Arena arena(4096, 0);
  EXPECT_EQ(arena.largest(), 0u);
  EXPECT_EQ(arena.take(1), std::nullopt);
}

}  // namespace
}  // namespace tutti
