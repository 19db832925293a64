#include "transport/mesh/context_table.h"

#include <deque>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(ContextTable, CollectivesMeetByExactName) {
  std::size_t early = 0;
  ContextTable table(early);
  std::deque<RecvOp> ops;
  for (int peer = 0; peer < 7; ++peer) {
    for (std::uint64_t sequence = 0; sequence < 30; ++sequence) {
      for (std::uint32_t index = 0; index < 5; ++index) {
        RecvOp& op = ops.emplace_back();
        op.peer = peer;
        op.tag = {3, index, sequence};
        table.post(op);
      }
    }
  }
  for (RecvOp& op : ops) EXPECT_EQ(table.find_posted(op.peer, op.tag), &op);
  EXPECT_EQ(table.find_posted(7, {3, 0, 0}), nullptr);
  EXPECT_EQ(table.find_posted(0, {3, 5, 0}), nullptr);
}

TEST(ContextTable, RemovalInAnyOrder) {
  std::size_t early = 0;
  ContextTable table(early);
  std::deque<RecvOp> ops;
  std::vector<RecvOp*> order;
  for (std::uint32_t i = 0; i < 500; ++i) {
    ops.emplace_back().tag = {3, i, i / 7};
    ops.back().peer = static_cast<int>(i % 3);
    table.post(ops.back());
    order.push_back(&ops.back());
  }
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  for (RecvOp* op : order) {
    EXPECT_EQ(table.find_posted(op->peer, op->tag), op);
    table.unpost(*op);
    EXPECT_EQ(table.find_posted(op->peer, op->tag), nullptr);
  }
  EXPECT_EQ(table.any_posted(), nullptr);
}

TEST(ContextTable, UserMessagesMeetInOrderOfTime) {
  std::size_t early = 0;
  ContextTable table(early);
  RecvOp any, tagged, from;
  for (RecvOp* op : {&any, &tagged, &from}) op->tag = {3 | user_context_bit, 0, 5};
  tagged.peer = any_source;
  from.peer = 2;
  any.peer = any_source;
  any.any_tag = true;
  table.post(from);
  table.post(tagged);
  table.post(any);
  EXPECT_EQ(table.find_posted(2, from.tag), &from);
  EXPECT_EQ(table.find_posted(1, from.tag), &tagged);
  EXPECT_EQ(table.find_posted(1, {3 | user_context_bit, 0, 6}), &any);
  table.unpost(from);
  EXPECT_EQ(table.find_posted(2, from.tag), &tagged);

  Arrival first, second;
  first.peer = 2;
  first.header.tag = {3 | user_context_bit, 0, 5};
  second.peer = 1;
  second.header.tag = {3 | user_context_bit, 0, 5};
  table.keep(first, false);
  table.keep(second, false);
  EXPECT_EQ(table.find_kept(any), &first);
  EXPECT_EQ(table.find_kept(tagged), &first);
  table.unkeep(first);
  EXPECT_EQ(table.find_kept(from), nullptr);
  EXPECT_EQ(table.find_kept(any), &second);
}

TEST(ContextTable, EarlyMessagesAreFoundByOperation) {
  std::size_t early = 0;
  ContextTable table(early);
  std::deque<Arrival> arrivals;
  for (std::uint32_t i = 0; i < 300; ++i) {
    Arrival& arrival = arrivals.emplace_back();
    arrival.peer = static_cast<int>(i % 5);
    arrival.header.tag = {1, i, i % 20};
    table.keep(arrival, true);
  }
  EXPECT_EQ(early, arrivals.size());
  for (std::uint64_t sequence = 0; sequence < 20; ++sequence) {
    int found = 0;
    while (Arrival* arrival = table.find_early(sequence)) {
      EXPECT_EQ(arrival->header.tag.sequence, sequence);
      if (++found % 2 == 0) {
        table.compared(*arrival);
      } else {
        table.unkeep(*arrival);
      }
    }
    EXPECT_EQ(found, 15);
  }
  EXPECT_EQ(table.kept(), 140u);
  EXPECT_EQ(early, 0u);
}

TEST(ContextRanges, AreRememberedCompactly) {
  ContextRanges closed;
  for (std::uint32_t i = 0; i < 1000; ++i) closed.insert(i ^ 1);
  EXPECT_EQ(closed.ranges(), 1u);
  EXPECT_TRUE(closed.contains(0) && closed.contains(999));
  EXPECT_FALSE(closed.contains(1000));
  closed.insert(2000);
  EXPECT_FALSE(closed.contains(1999) || closed.contains(2001));
  EXPECT_TRUE(closed.contains(2000));
  closed.insert(2002), closed.insert(2001);
  EXPECT_EQ(closed.ranges(), 2u);
}

TEST(ContextRanges, MatchASet) {
  ContextRanges closed;
  std::set<std::uint32_t> set;
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const std::uint32_t context = random() % 700;
    closed.insert(context);
    set.insert(context);
    for (std::uint32_t c = 0; c < 700; c += 13) EXPECT_EQ(closed.contains(c), set.count(c) == 1);
  }
}

TEST(ContextRanges, StayBounded) {
  ContextRanges closed;
  for (std::uint32_t i = 0; i < 100'000; ++i) closed.insert(2 * i);
  EXPECT_LE(closed.ranges(), 1024u);
  EXPECT_TRUE(closed.contains(199'998));
  EXPECT_FALSE(closed.contains(199'997));
  EXPECT_TRUE(closed.contains(0));
}

}  // namespace
}  // namespace tutti
