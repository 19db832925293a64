#include <deque>
#include <random>

#include "tests/unit/transport/stream_pair.h"

namespace tutti {
namespace {

const Status gave_up(Code::timeout, "gave up", 0);

// Checks that other messages still arrive in both directions.
void expect_alive(StreamPair& pair) {
  for (const std::size_t bytes : {0u, 8u, 1000u}) {
    TestSend there(bytes, 70), back(bytes, 71);
    TestRecv there_recv(bytes, 70), back_recv(bytes, 71);
    pair.owner_b.recv(there_recv);
    pair.owner_a.recv(back_recv);
    pair.a->send(there);
    pair.b->send(back);
    pair.run();
    ASSERT_TRUE(there.ok() && there_recv.ok() && back.ok() && back_recv.ok()) << pair.a->status().to_string();
    EXPECT_EQ(there.memory, there_recv.memory);
  }
  EXPECT_TRUE(pair.a->status().ok() && pair.b->status().ok());
}

TEST(StreamCancel, SendInTheQueueVanishes) {
  StreamPair pair(small_limits);
  pair.room(0);
  TestSend first(50, 1), second(50, 2), large(1000, 3);
  for (TestSend* send : {&first, &second, &large}) pair.a->send(*send);
  pair.a->cancel_send(second, gave_up);
  pair.a->cancel_send(large, gave_up);
  EXPECT_TRUE(second.failed(Code::timeout) && large.failed(Code::timeout));
  pair.room(1 << 20);
  pair.a->write();
  pair.run();
  EXPECT_EQ(pair.owner_b.order, (std::vector<std::uint64_t>{1}));
  TestRecv recv(50, 1);
  pair.owner_b.recv(recv);
  EXPECT_TRUE(recv.ok());
  expect_alive(pair);
}

TEST(StreamCancel, SmallSendOnItsWayArrives) {
  StreamPair pair(small_limits);
  pair.room(80);
  TestSend send(60, 1);
  TestRecv recv(60, 1);
  pair.owner_b.recv(recv);
  pair.a->send(send);
  const std::vector<std::byte> sent = send.memory;
  pair.a->cancel_send(send, gave_up);
  EXPECT_TRUE(send.failed(Code::timeout));
  send.scribble();
  pair.run();
  EXPECT_TRUE(recv.ok());
  EXPECT_EQ(recv.memory, sent);
  expect_alive(pair);
}

TEST(StreamCancel, AnnouncedSendIsWithdrawn) {
  StreamPair pair(small_limits);
  TestSend send(1000, 1);
  pair.a->send(send);
  pair.run();
  EXPECT_EQ(pair.owner_b.kept.size(), 1u);
  pair.a->cancel_send(send, gave_up);
  EXPECT_TRUE(send.failed(Code::timeout));
  pair.run();
  EXPECT_EQ(pair.owner_b.withdrawn, 1);
  EXPECT_TRUE(pair.owner_b.kept.empty());
  expect_alive(pair);
}

// The sender cancels while the receiver's clear frame is still in transit.
TEST(StreamCancel, SendCrossesTheClear) {
  StreamPair pair(small_limits);
  TestSend send(1000, 1);
  TestRecv recv(1000, 1);
  pair.a->send(send);
  pair.b->read(1 << 20);
  pair.owner_b.recv(recv);
  pair.a->cancel_send(send, gave_up);
  TestSend reuse(1000, 2);
  TestRecv reuse_recv(1000, 2);
  pair.owner_b.recv(reuse_recv);
  pair.a->send(reuse);
  pair.run();
  EXPECT_TRUE(recv.failed(Code::timeout));
  EXPECT_NE(recv.status.message().find("rank 0 (host host0"), std::string::npos);
  EXPECT_TRUE(reuse.ok() && reuse_recv.ok());
  expect_alive(pair);
}

// Cancels a send after both ends have read 0 to 59 pieces of up to 37 bytes. The receive fails,
// gets all bytes, or never learns of the message.
TEST(StreamCancel, SendAtEveryByte) {
  int failed = 0, arrived = 0;
  for (std::size_t steps = 0; steps < 60; ++steps) {
    StreamPair pair(small_limits);
    pair.room(37);
    TestSend send(700, 1), beside(900, 2);
    TestRecv recv(700, 1), beside_recv(900, 2);
    pair.owner_b.recv(recv);
    pair.owner_b.recv(beside_recv);
    pair.a->send(send);
    pair.a->send(beside);
    for (std::size_t i = 0; i < steps; ++i) pair.b->read(37), pair.a->read(37);
    const std::vector<std::byte> sent = send.memory;
    if (send.completions == 0) pair.a->cancel_send(send, gave_up);
    EXPECT_EQ(send.completions, 1);
    send.scribble();
    pair.run();
    if (recv.completions == 0) {
      // The message was never announced.
      EXPECT_EQ(pair.owner_b.posted.size(), 1u);
    } else if (recv.ok()) {
      EXPECT_EQ(recv.memory, sent);
      ++arrived;
    } else {
      EXPECT_TRUE(recv.failed(Code::timeout));
      ++failed;
    }
    EXPECT_TRUE(beside.ok() && beside_recv.ok()) << "after " << steps;
    EXPECT_EQ(beside.memory, beside_recv.memory);
    expect_alive(pair);
  }
  EXPECT_GT(failed, 10);
  EXPECT_GT(arrived, 5);
}

TEST(StreamCancel, RecvAtEveryByte) {
  int refused = 0;
  for (const std::size_t bytes : {90u, 700u}) {
    for (std::size_t steps = 0; steps < 60; ++steps) {
      StreamPair pair(small_limits);
      pair.room(37);
      TestSend send(bytes, 1), beside(900, 2);
      TestRecv recv(bytes, 1), beside_recv(900, 2);
      pair.owner_b.recv(recv);
      pair.owner_b.recv(beside_recv);
      pair.a->send(send);
      pair.a->send(beside);
      for (std::size_t i = 0; i < steps; ++i) pair.b->read(37), pair.a->read(37);
      if (recv.completions == 0 && recv.channel != nullptr) {
        pair.b->cancel_recv(recv, gave_up);
        EXPECT_TRUE(recv.failed(Code::timeout));
        const std::vector<std::byte> before = recv.memory;
        pair.run();
        EXPECT_EQ(recv.memory, before) << "touched after its end";
        EXPECT_EQ(send.completions, 1);
        refused += send.status.code() == Code::timeout;
      }
      pair.run();
      EXPECT_TRUE(beside.ok() && beside_recv.ok());
      EXPECT_LE(recv.completions, 1);
      expect_alive(pair);
    }
  }
  EXPECT_GT(refused, 5);
}

// After half of a message has arrived, the test does one of three things. It claims the message
// (0), claims it and cancels the receive (1), or discards it (2).
TEST(StreamCancel, ClaimedHalfway) {
  for (const int what : {0, 1, 2}) {
    StreamPair pair(small_limits);
    pair.room(90);
    TestSend send(90, 1);
    TestRecv recv(90, 1);
    pair.a->send(send);
    pair.b->read(90);
    ASSERT_EQ(pair.owner_b.kept.size(), 1u);
    if (what == 2) {
      Arrival* arrival = pair.owner_b.kept.front();
      pair.owner_b.kept.clear();
      pair.b->discard(*arrival);
    } else {
      pair.owner_b.recv(recv);
      EXPECT_EQ(recv.completions, 0);
      if (what == 1) pair.b->cancel_recv(recv, gave_up);
    }
    pair.run();
    EXPECT_TRUE(send.ok());
    if (what == 0) {
      EXPECT_TRUE(recv.ok());
      EXPECT_EQ(recv.memory, send.memory);
    }
    expect_alive(pair);
  }
}

TEST(StreamCancel, DiscardedMessagesCompleteAtTheSender) {
  StreamPair pair(small_limits);
  std::deque<TestSend> sends;
  for (const bool at_once : {true, false}) {
    pair.owner_b.discard_all = at_once;
    for (const std::size_t bytes : {0u, 50u, 100u, 101u, 5000u}) pair.a->send(sends.emplace_back(bytes, 1));
    pair.run();
    for (Arrival* arrival : std::exchange(pair.owner_b.kept, {})) pair.b->discard(*arrival);
    pair.run();
  }
  for (const TestSend& send : sends) EXPECT_TRUE(send.ok());
  pair.owner_b.discard_all = false;
  expect_alive(pair);
}

// The receiver returns the credit of discarded messages.
TEST(StreamCancel, DiscardingForever) {
  StreamPair pair(small_limits);
  pair.owner_b.discard_all = true;
  std::deque<TestSend> sends;
  for (int i = 0; i < 2000; ++i) pair.a->send(sends.emplace_back(i % 150, 1));
  pair.run();
  for (const TestSend& send : sends) EXPECT_TRUE(send.ok());
}

// The `done` callbacks cancel the other operations and close the channel.
TEST(StreamCancel, FromWithinCompletions) {
  StreamPair pair(small_limits);
  pair.room(300);
  std::deque<TestSend> sends;
  std::deque<TestRecv> recvs;
  for (std::uint64_t i = 0; i < 6; ++i) {
    pair.owner_b.recv(recvs.emplace_back(1000, i));
    pair.a->send(sends.emplace_back(1000, i));
  }
  sends[0].then = [&] {
    pair.a->cancel_send(sends[1], gave_up);
    pair.a->cancel_send(sends[2], gave_up);
  };
  recvs[3].then = [&] {
    if (recvs[4].completions == 0) pair.b->cancel_recv(recvs[4], gave_up);
    pair.b->close(Status(Code::aborted, "from within"), false);
  };
  pair.run();
  for (const TestSend& send : sends) EXPECT_EQ(send.completions, 1);
  for (const TestRecv& recv : recvs) EXPECT_EQ(recv.completions, 1);
  EXPECT_TRUE(pair.a->closed && pair.b->closed);
}

TEST(StreamCancel, RandomCancels) {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    StreamPair pair(small_limits);
    pair.room(64 + random() % 600);
    std::deque<TestSend> sends;
    std::deque<TestRecv> recvs;
    for (std::uint64_t i = 0; i < 40; ++i) {
      sends.emplace_back(random() % 1500, i);
      recvs.emplace_back(sends.back().memory.size(), i);
      if (random() % 2 == 0) pair.owner_b.recv(recvs.back());
      pair.a->send(sends.back());
      for (int k = random() % 5; k > 0; --k) pair.b->read(random() % 400), pair.a->read(random() % 400);
      TestSend& send = sends[random() % sends.size()];
      if (random() % 3 == 0 && send.completions == 0) {
        pair.a->cancel_send(send, gave_up);
        send.scribble();
      }
      TestRecv& recv = recvs[random() % recvs.size()];
      if (random() % 3 == 0 && recv.completions == 0 && recv.channel != nullptr)
        pair.b->cancel_recv(recv, gave_up);
    }
    pair.run();
    for (Arrival* arrival : std::exchange(pair.owner_b.kept, {})) pair.b->discard(*arrival);
    pair.run();
    for (const TestSend& send : sends) ASSERT_EQ(send.completions, 1) << "seed " << seed;
    for (const TestRecv& recv : recvs) ASSERT_LE(recv.completions, 1);
    pair.owner_b.posted.clear();
    expect_alive(pair);
  }
}

}  // namespace
}  // namespace tutti
