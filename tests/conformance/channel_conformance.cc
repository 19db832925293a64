#include "tests/conformance/channel_conformance.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>

#include <tutti/buffer.h>

namespace tutti::conformance {
namespace {

// Makes every rank send one message of `bytes` to every rank, itself included, and receive one from each.
void exchange(World& world, std::size_t bytes, std::uint64_t sequence) {
  world.each([&](Node& node) {
    std::deque<Send> sends;
    std::deque<Recv> recvs;
    for (int peer = 0; peer < world.size(); ++peer) {
      node.post(recvs.emplace_back(bytes, peer, collective(sequence)));
      node.post(peer, sends.emplace_back(bytes, collective(sequence), node.mesh.rank() * 16 + peer));
    }
    for (int peer = 0; peer < world.size(); ++peer) {
      const Status& received = recvs[static_cast<std::size_t>(peer)].wait();
      ASSERT_TRUE(received.ok()) << received.to_string();
      EXPECT_TRUE(recvs[static_cast<std::size_t>(peer)].holds(peer * 16 + node.mesh.rank()))
          << bytes << " bytes";
      ASSERT_TRUE(sends[static_cast<std::size_t>(peer)].wait().ok());
    }
  });
}

TEST_P(ChannelConformance, ManySizesBothWays) {
  World world(GetParam(), 2, {.small_buffers = true, .limits = tiny});
  std::uint64_t sequence = 0;
  for (const std::size_t bytes : {0u, 1u, 8u, 63u, 64u, 65u, 255u, 256u, 257u, 1000u, 1023u, 1024u, 1025u,
                                  2048u, 4095u, 5000u, 65536u, 300'001u}) {
    exchange(world, bytes, sequence++);
  }
}

TEST_P(ChannelConformance, DefaultLimits) {
  World world(GetParam(), 2);
  std::uint64_t sequence = 0;
  for (const std::size_t bytes : {0u, 8u, 32'768u, 32'769u, 131'072u, 131'073u, 5'000'000u}) {
    exchange(world, bytes, sequence++);
  }
}

// For each limit, both ends use the smaller of their two values.
TEST_P(ChannelConformance, LimitsMayDiffer) {
  const MessageLimits other{.eager = 100'000, .credit = 6000, .fragment = 100'000};
  World world(GetParam(), 3, {.small_buffers = true, .limits = other, .limits_of_rank_0 = tiny});
  std::uint64_t sequence = 0;
  for (const std::size_t bytes : {0u, 100u, 256u, 257u, 2048u, 5000u, 65536u, 300'001u})
    exchange(world, bytes, sequence++);
  // A message of 1000 bytes is eager between ranks 1 and 2, but not between rank 0 and either of them.
  for (const int to : {0, 2}) {
    const std::uint64_t before = world[1].counters().frames_sent;
    Send send(1000, collective(sequence), 1);
    Recv recv(1000, 1, collective(sequence++));
    world[to].post(recv);
    world[1].post(to, send);
    ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
    EXPECT_EQ(world[1].counters().frames_sent - before, to == 0 ? 2u : 1u) << to;
  }
  // No receive is posted for these messages yet. Rank 1 permits fewer bytes of such messages than
  // rank 0.
  std::deque<Send> sends;
  std::deque<Recv> recvs;
  for (std::uint64_t i = 0; i < 100; ++i) {
    world[0].post(1, sends.emplace_back(200, collective(sequence + i), 1));
    world[1].post(0, sends.emplace_back(200, collective(sequence + i), 2));
  }
  for (std::uint64_t i = 0; i < 100; ++i) {
    world[1].post(recvs.emplace_back(200, 0, collective(sequence + i)));
    world[0].post(recvs.emplace_back(200, 1, collective(sequence + i)));
  }
  for (Recv& recv : recvs) EXPECT_TRUE(recv.wait().ok()) << recv.status.to_string();
  for (Send& send : sends) EXPECT_TRUE(send.wait().ok()) << send.status.to_string();
}

TEST_P(ChannelConformance, AllToAllStorms) {
  for (const int ranks : {1, 2, 3, 4, 7, 8, 16}) {
    World world(GetParam(), ranks, {.small_buffers = true, .limits = tiny});
    for (std::uint64_t sequence = 0; sequence < 6; ++sequence) {
      exchange(world, sequence % 2 == 0 ? 100 : 3000, sequence);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      world[rank].drive([&] { EXPECT_EQ(world[rank].mesh.open_channels(), ranks - 1); });
    }
  }
}

// Both sides send their first message at the same time. They end up with only one connection, and
// no message is lost.
TEST_P(ChannelConformance, SimultaneousFirstSends) {
  for (int round = 0; round < 20; ++round) {
    World world(GetParam(), 2);
    exchange(world, round % 2 == 0 ? 8 : 200'000, 0);
  }
}

TEST_P(ChannelConformance, SmallMessageIsOneFrame) {
  World world(GetParam(), 2);
  exchange(world, 8, 0);
  const ChannelCounters before[] = {world[0].counters(), world[1].counters()};
  Send send(8, collective(1), 3);
  Recv recv(8, 0, collective(1));
  world[1].post(recv);
  world[0].post(1, send);
  ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
  const ChannelCounters after[] = {world[0].counters(), world[1].counters()};
  EXPECT_EQ(after[0].frames_sent - before[0].frames_sent, 1u);
  EXPECT_EQ(after[0].messages_sent - before[0].messages_sent, 1u);
  EXPECT_EQ(after[0].bytes_sent - before[0].bytes_sent, 8u);
  EXPECT_EQ(after[1].frames_sent - before[1].frames_sent, 0u);
  EXPECT_EQ(after[1].messages_received - before[1].messages_received, 1u);
  EXPECT_EQ(after[1].bytes_received - before[1].bytes_received, 8u);
}

template <class T>
void reduce(World& world, std::size_t count, MessageSide side, bool in_place, std::uint64_t sequence) {
  const auto subtract = [](const void* left, const void* right, void* to, std::size_t n, DataType, void*) {
    for (std::size_t i = 0; i < n; ++i) {
      static_cast<T*>(to)[i] =
          static_cast<T>(static_cast<const T*>(left)[i] - static_cast<const T*>(right)[i]);
    }
  };
  const ReduceOp op = ReduceOp::user("subtract", subtract, false);
  const Reducer reducer(DataTypeOf<T>::value, op);
  Send send(count * sizeof(T), collective(sequence), static_cast<int>(sequence));
  std::vector<T> theirs(count), local(count), out(count), expected(count);
  if (count > 0) std::memcpy(theirs.data(), send.memory.data(), send.memory.size());
  for (std::size_t i = 0; i < count; ++i) {
    local[i] = static_cast<T>(i * 5 + 3);
    expected[i] = static_cast<T>(side == MessageSide::left ? theirs[i] - local[i] : local[i] - theirs[i]);
  }
  Recv recv(count * sizeof(T), 0, collective(sequence));
  recv.sink.local = reinterpret_cast<const std::byte*>(local.data());
  recv.sink.out = reinterpret_cast<std::byte*>(in_place ? local.data() : out.data());
  recv.sink.reducer = &reducer;
  recv.sink.side = side;
  if (sequence % 3 == 0) world[1].post(recv);
  world[0].post(1, send);
  if (sequence % 3 != 0) world[1].post(recv);
  ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
  EXPECT_EQ(in_place ? local : out, expected) << count << " elements of " << sizeof(T) << " bytes";
}

TEST_P(ChannelConformance, ReducesWhatArrives) {
  World world(GetParam(), 2, {.small_buffers = true, .limits = tiny});
  std::uint64_t sequence = 0;
  for (const std::size_t count : {0u, 1u, 3u, 31u, 33u, 127u, 129u, 1001u, 30'007u}) {
    for (const auto side : {MessageSide::left, MessageSide::right}) {
      for (const bool in_place : {false, true}) {
        reduce<std::uint8_t>(world, count, side, in_place, sequence++);
        reduce<std::int32_t>(world, count, side, in_place, sequence++);
        reduce<std::uint64_t>(world, count, side, in_place, sequence++);
        reduce<std::int8_t>(world, count, side, in_place, sequence++);
      }
    }
  }
}

TEST_P(ChannelConformance, ReceivesInAnotherOrderThanSends) {
  World world(GetParam(), 2, {.small_buffers = true, .limits = tiny});
  constexpr std::size_t count = 16;
  std::deque<Send> sends;
  std::deque<Recv> recvs;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bytes = i % 2 == 0 ? 100 : 5000;
    sends.emplace_back(bytes, collective(0, static_cast<std::uint32_t>(i)), static_cast<int>(i));
    recvs.emplace_back(bytes, 0, collective(0, static_cast<std::uint32_t>(i)));
  }
  for (Send& send : sends) world[0].post(1, send);
  for (std::size_t i = count; i-- > 0;) {
    world[1].post(recvs[i]);
    ASSERT_TRUE(recvs[i].wait().ok());
    EXPECT_TRUE(recvs[i].holds(static_cast<int>(i)));
  }
  for (Send& send : sends) EXPECT_TRUE(send.wait().ok());
}

// A sender that is far ahead has to wait. Unexpected messages never exceed the credit, and all
// arrive in the end.
TEST_P(ChannelConformance, UnexpectedMessagesAreBounded) {
  World world(GetParam(), 2, {.small_buffers = true, .limits = tiny});
  constexpr std::size_t count = 2000;
  std::deque<Send> sends;
  for (std::size_t i = 0; i < count; ++i)
    world[0].post(1, sends.emplace_back(200, collective(i), static_cast<int>(i)));
  // Until this message arrives, rank 0 can send as much as its credit allows. Rank 1 has sent nothing before,
  // so it has credit for this message.
  Send back(0, collective(0), 0);
  Recv back_recv(0, 1, collective(0));
  world[0].post(back_recv);
  world[1].post(0, back);
  ASSERT_TRUE(back_recv.wait().ok() && back.wait().ok());
  std::size_t sent = 0;
  const auto done = [](const Send& send) { return send.over.load() != 0; };
  world[0].drive([&] { sent = static_cast<std::size_t>(std::count_if(sends.begin(), sends.end(), done)); });
  EXPECT_LE(sent * 200, tiny.credit);
  for (std::size_t i = 0; i < count; ++i) {
    Recv recv(200, 0, collective(i));
    world[1].post(recv);
    ASSERT_TRUE(recv.wait().ok());
    EXPECT_TRUE(recv.holds(static_cast<int>(i)));
  }
  for (Send& send : sends) EXPECT_TRUE(send.wait().ok());
}

// Two large payloads go in each direction, over small buffers. On each side, the receive for one payload is
// posted only after the other payload has arrived. Neither payload blocks the other.
TEST_P(ChannelConformance, NoPayloadBlocksAnother) {
  World world(GetParam(), 2, {.small_buffers = true});
  constexpr std::size_t bytes = 4'000'000;
  Send first(bytes, collective(1), 1), second(bytes, collective(2), 2);
  Send back_first(bytes, collective(1), 3), back_second(bytes, collective(2), 4);
  for (Send* send : {&first, &second}) world[0].post(1, *send);
  for (Send* send : {&back_second, &back_first}) world[1].post(0, *send);
  Recv first_recv(bytes, 0, collective(1)), second_recv(bytes, 0, collective(2));
  Recv back_first_recv(bytes, 1, collective(1)), back_second_recv(bytes, 1, collective(2));
  world[1].post(second_recv);
  world[0].post(back_first_recv);
  ASSERT_TRUE(second_recv.wait().ok() && back_first_recv.wait().ok());
  EXPECT_EQ(first.over.load(), 0u);
  EXPECT_EQ(back_second.over.load(), 0u);
  world[1].post(first_recv);
  world[0].post(back_second_recv);
  ASSERT_TRUE(first_recv.wait().ok() && back_second_recv.wait().ok());
  EXPECT_TRUE(first_recv.holds(1) && second_recv.holds(2) && back_first_recv.holds(3) &&
              back_second_recv.holds(4));
  for (Send* send : {&first, &second, &back_first, &back_second}) EXPECT_TRUE(send->wait().ok());
}

TEST_P(ChannelConformance, SmallMessagesOvertakeLargeOnes) {
  World world(GetParam(), 2, {.small_buffers = true, .limits = tiny});
  constexpr std::size_t bytes = 2'000'000;
  Send large(bytes, collective(1), 1);
  Recv large_recv(bytes, 0, collective(1));
  world[1].post(large_recv);
  world[0].post(1, large);
  int overtook = 0;
  for (std::uint64_t i = 2; i < 22; ++i) {
    Send small(8, collective(i), static_cast<int>(i));
    Recv small_recv(8, 0, collective(i));
    world[1].post(small_recv);
    world[0].post(1, small);
    ASSERT_TRUE(small_recv.wait().ok() && small.wait().ok());
    overtook += large_recv.over.load() == 0;
  }
  ASSERT_TRUE(large_recv.wait().ok() && large.wait().ok());
  EXPECT_GT(overtook, 0);
  EXPECT_TRUE(large_recv.holds(1));
}

TEST_P(ChannelConformance, SendsToOneself) {
  World world(GetParam(), 1);
  std::uint64_t sequence = 0;
  for (const std::size_t bytes : {0u, 8u, 1'000'000u, 0u, 8u, 1'000'000u}) {
    const bool recv_first = sequence < 3;
    Send send(bytes, collective(sequence), 1);
    Recv recv(bytes, 0, collective(sequence));
    ++sequence;
    if (recv_first) world[0].post(recv);
    world[0].post(0, send);
    if (!recv_first) world[0].post(recv);
    ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
    EXPECT_TRUE(recv.holds(1));
  }
  world[0].drive([&] { EXPECT_EQ(world[0].mesh.open_channels(), 0); });
}

TEST_P(ChannelConformance, UserMessagesByTagAndSource) {
  World world(GetParam(), 3, {.limits = tiny});
  Send a(10, user(5), 1), b(2000, user(6), 2), c(30, user(5), 3), d(0, user(5), 4);
  world[0].post(2, a);
  world[0].post(2, b);
  world[1].post(2, c);
  world[1].post(2, d);
  Recv tagged(4000, 0, user(6)), from_one(100, 1, user(5)), again(100, 1, user(5)),
      any(100, any_source, user(0));
  any.any_tag = true;
  for (Recv* recv : {&tagged, &from_one, &again}) world[2].post(*recv);
  ASSERT_TRUE(tagged.wait().ok() && from_one.wait().ok() && again.wait().ok());
  EXPECT_TRUE(tagged.holds(2) && from_one.holds(3));
  EXPECT_EQ(tagged.received.bytes, 2000u);
  EXPECT_EQ(again.received.bytes, 0u);
  world[2].post(any);
  ASSERT_TRUE(any.wait().ok());
  EXPECT_TRUE(any.holds(1));
  EXPECT_EQ(any.source, 0);
  EXPECT_EQ(any.received.tag.sequence, 5u);
  for (Send* send : {&a, &b, &c, &d}) EXPECT_TRUE(send->wait().ok());
}

// Small and large messages of one sender with the same tag are received in the order of sending.
TEST_P(ChannelConformance, UserMessagesKeepTheirOrder) {
  World world(GetParam(), 3, {.small_buffers = true, .limits = tiny});
  constexpr int count = 100;
  world.each([&](Node& node) {
    if (node.mesh.rank() < 2) {
      std::deque<Send> sends;
      for (int i = 0; i < count; ++i) node.post(2, sends.emplace_back(i % 3 == 0 ? 3000 : 20, user(1), i));
      for (Send& send : sends) ASSERT_TRUE(send.wait().ok());
      return;
    }
    int next[2] = {0, 0};
    for (int i = 0; i < 2 * count; ++i) {
      Recv recv(4000, any_source, user(1));
      node.post(recv);
      ASSERT_TRUE(recv.wait().ok());
      EXPECT_TRUE(recv.holds(next[recv.source]++)) << "from " << recv.source;
    }
  });
}

TEST_P(ChannelConformance, MessagesBeforeTheirContext) {
  World world(GetParam(), 2, {.attached = false, .limits = tiny});
  world[0].drive([&] { world[0].mesh.attach(test_context, world[0].context); });
  Send small(100, collective(0), 1), large(5000, collective(1), 2), tagged(10, user(3), 3);
  for (Send* send : {&small, &large, &tagged}) world[0].post(1, *send);
  ASSERT_TRUE(small.wait().ok());
  world[1].drive([&] { world[1].mesh.attach(test_context, world[1].context); });
  Recv small_recv(100, 0, collective(0)), large_recv(5000, 0, collective(1)), tagged_recv(10, 0, user(3));
  for (Recv* recv : {&small_recv, &large_recv, &tagged_recv}) world[1].post(*recv);
  for (Recv* recv : {&small_recv, &large_recv, &tagged_recv}) ASSERT_TRUE(recv->wait().ok());
  EXPECT_TRUE(small_recv.holds(1) && large_recv.holds(2) && tagged_recv.holds(3));
  EXPECT_TRUE(large.wait().ok() && tagged.wait().ok());
}

// Messages for a context that has ended are read and dropped. They use no credit, and do not
// disturb other messages.
TEST_P(ChannelConformance, MessagesAfterTheirContext) {
  World world(GetParam(), 2, {.small_buffers = true, .limits = tiny});
  TestContext other[2];
  for (int rank : {0, 1}) world[rank].drive([&] { world[rank].mesh.attach(2, other[rank]); });
  std::deque<Send> sends;
  for (std::uint64_t i = 0; i < 20; ++i) {
    world[0].post(1, sends.emplace_back(i % 2 == 0 ? 200 : 5000, MessageTag{2, 0, i}, 1));
  }
  ASSERT_TRUE(sends[0].wait().ok());
  world[1].drive([&] { world[1].mesh.detach(2); });
  for (std::uint64_t i = 20; i < 200; ++i) {
    world[0].post(1, sends.emplace_back(i % 2 == 0 ? 200 : 5000, MessageTag{2, 0, i}, 1));
  }
  for (Send& send : sends) ASSERT_TRUE(send.wait().ok());
  exchange(world, 3000, 0);
  Recv late(8, 0, MessageTag{2, 0, 500});
  world[1].post(late);
  EXPECT_EQ(late.wait().code(), Code::aborted);
  world[0].drive([&] { world[0].mesh.detach(2); });
}

// Ranks exchange random messages, in blocks of eight for each pair. Each rank posts the sends and receives of
// a block in random order.
TEST_P(ChannelConformance, Soak) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 3);
    World world(GetParam(), ranks, {.small_buffers = seed % 2 == 0, .limits = tiny});
    const auto bytes_of = [seed](int from, int to, std::uint64_t i) {
      std::mt19937 random(seed * 1000003u + static_cast<std::uint32_t>(from * 64 + to) * 977u +
                          static_cast<std::uint32_t>(i));
      return std::size_t{random() % (random() % 8 == 0 ? 160'000 : 600)};
    };
    world.each([&](Node& node) {
      const int me = node.mesh.rank();
      std::mt19937 random(seed + static_cast<std::uint32_t>(me));
      for (std::uint64_t block = 0; block < 20; ++block) {
        std::deque<Send> sends;
        std::deque<Recv> recvs;
        // {peer, i} stands for a send, and {~peer, i} for a receive.
        std::vector<std::pair<int, std::uint64_t>> actions;
        for (int peer = 0; peer < ranks; ++peer) {
          for (std::uint64_t i = block * 8; i < block * 8 + 8; ++i) {
            actions.push_back({peer, i}), actions.push_back({~peer, i});
          }
        }
        std::shuffle(actions.begin(), actions.end(), random);
        for (const auto& [peer, i] : actions) {
          if (peer >= 0) {
            node.post(peer, sends.emplace_back(bytes_of(me, peer, i), collective(i), static_cast<int>(i)));
          } else {
            node.post(recvs.emplace_back(bytes_of(~peer, me, i), ~peer, collective(i)));
          }
        }
        for (Recv& recv : recvs) {
          ASSERT_TRUE(recv.wait().ok()) << "seed " << seed << ": " << recv.status.to_string();
          ASSERT_TRUE(recv.holds(static_cast<int>(recv.tag.sequence))) << "seed " << seed;
        }
        for (Send& send : sends) ASSERT_TRUE(send.wait().ok());
      }
    });
  }
}

}  // namespace
}  // namespace tutti::conformance
