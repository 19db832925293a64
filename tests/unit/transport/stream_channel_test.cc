#include <deque>
#include <random>

#include <sys/mman.h>

#include <tutti/buffer.h>

#include "tests/unit/transport/stream_pair.h"
#include "transport/mesh/loopback.h"

namespace tutti {
namespace {

TEST(Stream, SmallMessageIsOneFrame) {
  StreamPair pair;
  TestSend send(8, 5);
  TestRecv recv(8, 5);
  pair.owner_b.recv(recv);
  pair.a->send(send);
  EXPECT_TRUE(send.ok());
  pair.run();
  EXPECT_TRUE(recv.ok());
  EXPECT_EQ(recv.memory, send.memory);
  EXPECT_EQ(recv.source, 0);
  EXPECT_EQ(recv.received.bytes, 8u);
  EXPECT_EQ(pair.a->counters().frames_sent, 1u);
  EXPECT_EQ(pair.b->counters().frames_sent, 0u);
  EXPECT_EQ(pair.b->counters().messages_received, 1u);
}

// A pipe that asks for a frame in vain has written nothing. So another transport can still be used instead.
TEST(Stream, HasNotBegunBeforeThereIsAFrame) {
  StreamPair pair;
  pair.a->write();
  EXPECT_FALSE(pair.a->has_begun());
  TestSend send(8);
  pair.a->send(send);
  EXPECT_TRUE(pair.a->has_begun());
}

// Tests sizes around the limits. Each message arrives in chunks, and its receive is posted before or after
// the message arrives.
TEST(Stream, AllSizesAllChunks) {
  for (const std::size_t bytes : {0u, 1u, 63u, 64u, 99u, 100u, 101u, 255u, 256u, 257u, 512u, 1000u, 5000u}) {
    for (const std::size_t chunk : {1u, 7u, 64u, 65u, 1000u, 100000u}) {
      for (const bool early : {false, true}) {
        StreamPair pair(small_limits);
        pair.room(chunk);
        TestSend send(bytes);
        TestRecv recv(bytes);
        if (early) pair.owner_b.recv(recv);
        pair.a->send(send);
        pair.run(chunk);
        if (!early) pair.owner_b.recv(recv);
        pair.run(chunk);
        EXPECT_TRUE(send.ok() && recv.ok()) << bytes << " bytes, chunk " << chunk;
        EXPECT_EQ(recv.memory, send.memory);
      }
    }
  }
}

template <class T>
void reduce_case(std::size_t count, std::size_t chunk, MessageSide side, bool in_place, bool early) {
  StreamPair pair(small_limits);
  pair.room(chunk);
  // This message of one byte shifts all later data out of alignment.
  TestSend shift(1, 1);
  TestRecv shift_recv(1, 1);
  pair.owner_b.recv(shift_recv);
  pair.a->send(shift);

  TestSend send(count * sizeof(T));
  std::vector<T> theirs(count), local(count), out(count), expected(count);
  if (count > 0) std::memcpy(theirs.data(), send.memory.data(), send.memory.size());
  for (std::size_t i = 0; i < count; ++i) {
    local[i] = static_cast<T>(i * 3 + 1);
    const T left = side == MessageSide::left ? theirs[i] : local[i];
    const T right = side == MessageSide::left ? local[i] : theirs[i];
    expected[i] = static_cast<T>(left - right);
  }
  // The result of a subtraction shows which operand was left and which was right.
  const auto subtract = [](const void* left, const void* right, void* to, std::size_t n, DataType, void*) {
    for (std::size_t i = 0; i < n; ++i) {
      static_cast<T*>(to)[i] =
          static_cast<T>(static_cast<const T*>(left)[i] - static_cast<const T*>(right)[i]);
    }
  };
  const ReduceOp op = ReduceOp::user("subtract", subtract, false);
  const Reducer reducer(DataTypeOf<T>::value, op);
  TestRecv recv(count * sizeof(T));
  recv.sink.local = reinterpret_cast<const std::byte*>(local.data());
  recv.sink.out = reinterpret_cast<std::byte*>(in_place ? local.data() : out.data());
  recv.sink.reducer = &reducer;
  recv.sink.side = side;
  if (early) pair.owner_b.recv(recv);
  pair.a->send(send);
  pair.run(chunk);
  if (!early) pair.owner_b.recv(recv);
  pair.run(chunk);
  ASSERT_TRUE(recv.ok());
  EXPECT_EQ(in_place ? local : out, expected) << count << " elements of " << sizeof(T) << ", chunk " << chunk;
}

TEST(Stream, Reductions) {
  for (const std::size_t count : {0u, 1u, 3u, 12u, 13u, 100u, 777u, 3001u}) {
    for (const std::size_t chunk : {1u, 13u, 100u, 100000u}) {
      for (const auto side : {MessageSide::left, MessageSide::right}) {
        for (const int how : {0, 1, 2, 3}) {
          reduce_case<std::uint8_t>(count, chunk, side, how & 1, how & 2);
          reduce_case<std::int32_t>(count, chunk, side, how & 1, how & 2);
          reduce_case<std::uint64_t>(count, chunk, side, how & 1, how & 2);
        }
      }
    }
  }
}

TEST(Stream, AnnouncementsKeepTheOrderOfSending) {
  StreamPair pair(small_limits);
  std::deque<TestSend> sends;
  for (std::uint64_t i = 0; i < 200; ++i) {
    sends.emplace_back(i % 3 == 0 ? 300 : i % 7, i);
    pair.a->send(sends.back());
  }
  pair.run();
  std::deque<TestRecv> recvs;
  for (std::uint64_t i = 0; i < 200; ++i) {
    recvs.emplace_back(sends[i].memory.size(), i);
    pair.owner_b.recv(recvs.back());
    pair.run();
  }
  for (std::uint64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(pair.owner_b.order[i], i);
    EXPECT_TRUE(sends[i].ok() && recvs[i].ok()) << i;
    EXPECT_EQ(recvs[i].memory, sends[i].memory);
  }
}

TEST(Stream, UnexpectedMessagesAreBounded) {
  StreamPair pair(small_limits);
  std::deque<TestSend> sends;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    sends.emplace_back(i % 2 == 0 ? 0 : 50, i);
    pair.a->send(sends.back());
  }
  pair.run();
  const std::size_t first = pair.owner_b.kept.size();
  EXPECT_GE(first * StreamLimits::overhead, small_limits.credit / 2);
  EXPECT_LE(first * StreamLimits::overhead, small_limits.credit);
  EXPECT_EQ(std::count_if(sends.begin(), sends.end(), [](const TestSend& s) { return s.ok(); }),
            static_cast<long>(first));
  std::deque<TestRecv> recvs;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    recvs.emplace_back(sends[i].memory.size(), i);
    pair.owner_b.recv(recvs.back());
    pair.run();
    EXPECT_LE(pair.owner_b.kept.size() * StreamLimits::overhead, small_limits.credit);
  }
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_TRUE(sends[i].ok() && recvs[i].ok()) << i;
}

// One message stays unclaimed. All other messages must still arrive, since each of them fits into half of
// the credit. (The receiver may collect up to half of the credit before it returns any.)
TEST(Stream, CreditComesBackBeforeAnybodyStalls) {
  StreamPair pair(small_limits);
  TestSend held(100, 9999);
  pair.a->send(held);
  for (std::uint64_t i = 0; i < 500; ++i) {
    TestSend send(i % 101, i);
    TestRecv recv(i % 101, i);
    pair.a->send(send);
    pair.run();
    pair.owner_b.recv(recv);
    pair.run();
    ASSERT_TRUE(send.ok() && recv.ok()) << i;
  }
}

TEST(Stream, RequestsAreBounded) {
  StreamPair pair(small_limits);
  std::deque<TestSend> sends;
  for (std::uint64_t i = 0; i < StreamLimits::max_unanswered + 50; ++i)
    pair.a->send(sends.emplace_back(200, i));
  pair.run();
  EXPECT_EQ(pair.owner_b.kept.size(), StreamLimits::max_unanswered);
  std::deque<TestRecv> recvs;
  for (std::uint64_t i = 0; i < sends.size(); ++i) {
    pair.owner_b.recv(recvs.emplace_back(200, i));
    pair.run();
  }
  for (std::size_t i = 0; i < sends.size(); ++i) EXPECT_TRUE(sends[i].ok() && recvs[i].ok());
}

// A large message in transit delays neither a small message nor another large one.
TEST(Stream, PayloadsTakeTurns) {
  StreamPair pair(small_limits);
  pair.room(300);
  TestSend large(200'000, 1), other(1'000, 2), small(8, 3);
  TestRecv large_recv(200'000, 1), other_recv(1'000, 2), small_recv(8, 3);
  for (TestRecv* recv : {&large_recv, &other_recv, &small_recv}) pair.owner_b.recv(*recv);
  pair.a->send(large);
  for (int i = 0; i < 20; ++i) pair.b->read(300), pair.a->read(300);
  EXPECT_EQ(large_recv.completions, 0);
  pair.a->send(other);
  pair.a->send(small);
  for (int i = 0; i < 40; ++i) pair.b->read(300), pair.a->read(300);
  EXPECT_TRUE(small_recv.ok());
  EXPECT_TRUE(other_recv.ok());
  EXPECT_EQ(large_recv.completions, 0);
  pair.run();
  EXPECT_TRUE(large_recv.ok());
  EXPECT_EQ(large_recv.memory, large.memory);
}

// An endless stream of small messages does not starve a large message.
TEST(Stream, SmallMessagesDoNotStarveLargeOnes) {
  StreamPair pair;
  pair.room(256);
  TestSend large(200'000, 1);
  TestRecv large_recv(200'000, 1);
  pair.owner_b.recv(large_recv);
  pair.a->send(large);
  std::deque<TestSend> sends;
  std::deque<TestRecv> recvs;
  std::uint64_t next = 2;
  for (int round = 0; round < 20'000 && !large_recv.ok(); ++round) {
    while (next < 64 + 4 * static_cast<std::uint64_t>(round)) {
      pair.owner_b.recv(recvs.emplace_back(8, next));
      pair.a->send(sends.emplace_back(8, next++));
    }
    pair.b->read(256), pair.a->read(256);
  }
  EXPECT_TRUE(large_recv.ok());
  pair.run();
}

// Each completion issues the next operation, thousands of times in a row.
TEST(Stream, CompletionsMayIssueOperations) {
  StreamPair pair;
  std::deque<TestSend> sends;
  for (std::uint64_t i = 0; i < 5000; ++i) sends.emplace_back(8, i).memory[0] = std::byte{1};
  for (std::size_t i = 0; i + 1 < sends.size(); ++i) sends[i].then = [&, i] { pair.a->send(sends[i + 1]); };
  pair.owner_b.discard_all = true;
  pair.a->send(sends[0]);
  pair.run();
  EXPECT_TRUE(sends.back().ok());

  LoopbackChannel self(pair.owner_a, {});
  TestOwner& owner = pair.owner_a;
  std::deque<TestRecv> recvs;
  std::deque<TestSend> more;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    recvs.emplace_back(8, i);
    more.emplace_back(8, i);
  }
  for (std::size_t i = 0; i + 1 < recvs.size(); ++i) {
    recvs[i].then = [&, i] {
      owner.recv(recvs[i + 1]);
      self.send(more[i + 1]);
    };
  }
  owner.recv(recvs[0]);
  self.send(more[0]);
  EXPECT_TRUE(recvs.back().ok());
  self.close(Status(Code::aborted, "end"), false);
}

TEST(Stream, AbortReachesThePeerWithItsCause) {
  StreamPair pair;
  pair.a->send_abort(7, Status(Code::timeout, "rank 1 did not arrive", 1));
  pair.a->send_abort(8, Status(Code::aborted, "bad\nline", -1));
  pair.run();
  ASSERT_EQ(pair.owner_b.aborts.size(), 2u);
  EXPECT_EQ(pair.owner_b.aborts[0].first, 7u);
  EXPECT_EQ(pair.owner_b.aborts[0].second.to_string(), "timeout: rank 1 did not arrive");
  EXPECT_EQ(pair.owner_b.aborts[0].second.peer(), 1);
  EXPECT_EQ(pair.owner_b.aborts[1].second.message(), R"(bad\nline)");
  EXPECT_EQ(pair.owner_b.aborts[1].second.peer(), -1);
}

TEST(Stream, GoodbyeIsClean) {
  StreamPair pair;
  TestSend send(8, 1), large(200'000, 2);
  pair.a->send(send);
  pair.a->send(large);
  TestRecv pending(8, 3);
  TestSend back(200'000, 4);
  pair.b->send(back);
  pair.run();
  pair.a->close(Status(Code::aborted, "over", 0), true);
  EXPECT_FALSE(pair.a->drained());
  EXPECT_TRUE(large.failed(Code::aborted));
  pair.run();
  EXPECT_TRUE(pair.a->drained());
  EXPECT_TRUE(pair.owner_a.downs.empty());
  ASSERT_EQ(pair.owner_b.downs.size(), 1u);
  EXPECT_EQ(pair.owner_b.downs[0].code(), Code::aborted);
  EXPECT_NE(pair.owner_b.downs[0].message().find("rank 0 (host host0, pid 100) has left"), std::string::npos);
  EXPECT_TRUE(back.failed(Code::aborted));
  // Messages that had arrived completely can still be received. All other messages fail.
  TestRecv recv(8, 1), large_recv(200'000, 2);
  pair.owner_b.recv(recv);
  EXPECT_TRUE(recv.ok());
  EXPECT_EQ(recv.memory, send.memory);
  pair.owner_b.recv(large_recv);
  EXPECT_TRUE(large_recv.failed(Code::aborted));
  TestSend late(8);
  pair.b->send(late);
  EXPECT_TRUE(late.failed(Code::aborted));
}

TEST(Stream, BothSayGoodbyeAtOnce) {
  StreamPair pair;
  pair.a->close(Status(Code::aborted, "over"), true);
  pair.b->close(Status(Code::aborted, "over"), true);
  pair.run();
  EXPECT_TRUE(pair.a->drained() && pair.b->drained());
  EXPECT_TRUE(pair.owner_a.downs.empty() && pair.owner_b.downs.empty());
}

// A goodbye follows only after the rest of a frame, even if the operation of that frame has ended.
TEST(Stream, GoodbyeAfterHalfAFrame) {
  StreamPair pair;
  pair.room(100);
  TestSend send(1000, 1);
  TestRecv recv(1000, 1);
  pair.owner_b.recv(recv);
  pair.a->send(send);
  const std::vector<std::byte> sent = send.memory;
  pair.a->close(Status(Code::aborted, "over"), true);
  EXPECT_TRUE(send.failed(Code::aborted));
  send.scribble();
  pair.run();
  EXPECT_TRUE(recv.ok());
  EXPECT_EQ(recv.memory, sent);
  EXPECT_TRUE(pair.a->drained());
}

TEST(Stream, LostPeerFailsEverything) {
  StreamPair pair(small_limits);
  pair.room(200);
  TestSend queued(10, 1), large(1000, 2), active(10'000, 3);
  TestRecv recv(10'000, 3), other(500, 4);
  pair.owner_b.recv(recv);
  pair.owner_a.recv(other);
  TestSend back(500, 4);
  pair.b->send(back);
  pair.a->send(active);
  for (int i = 0; i < 5; ++i) pair.b->read(200), pair.a->read(200);
  pair.a->send(large);
  pair.a->send(queued);
  pair.b->close(Status(Code::internal, "crash"), false);
  pair.run();
  ASSERT_EQ(pair.owner_a.downs.size(), 1u);
  EXPECT_EQ(pair.owner_a.downs[0].code(), Code::peer_lost);
  for (const TestSend* send : {&large, &active}) EXPECT_TRUE(send->failed(Code::peer_lost));
  EXPECT_TRUE(recv.failed(Code::internal));
  EXPECT_TRUE(pair.a->closed && pair.b->closed);
}

// Lengths have 64 bits. This message is five gigabytes long. Nothing touches its buffers, so they are only
// reserved address space.
TEST(Stream, MessagesOverFourGigabytes) {
  const std::size_t bytes = (std::size_t{5} << 30) + 8;
  void* source = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* target = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_TRUE(source != MAP_FAILED && target != MAP_FAILED);
  struct Seen {
    std::uint64_t elements = 0;
    const void* last = nullptr;
  } seen;
  const auto count = [](const void*, const void*, void* out, std::size_t n, DataType, void* state) {
    static_cast<Seen*>(state)->elements += n;
    static_cast<Seen*>(state)->last = static_cast<std::uint64_t*>(out) + n;
  };
  const ReduceOp op = ReduceOp::user("count", count, true, &seen);
  const Reducer reducer(DataType::uint64, op);
  TestOwner owner(0);
  LoopbackChannel self(owner, {});
  TestSend send(0);
  send.data = static_cast<const std::byte*>(source);
  send.header.bytes = bytes;
  TestRecv recv(0);
  recv.bytes = bytes;
  recv.sink.out = static_cast<std::byte*>(target);
  recv.sink.local = recv.sink.out;
  recv.sink.reducer = &reducer;
  owner.recv(recv);
  self.send(send);
  EXPECT_TRUE(send.ok() && recv.ok());
  EXPECT_EQ(seen.elements, bytes / 8);
  EXPECT_EQ(seen.last, static_cast<std::byte*>(target) + bytes);
  ::munmap(source, bytes);
  ::munmap(target, bytes);
}

TEST(Stream, RandomTraffic) {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    StreamPair pair(small_limits);
    pair.room(64 + random() % 2000);
    std::deque<TestSend> sends[2];
    std::deque<TestRecv> recvs[2];
    PipeChannel* channels[2] = {pair.a.get(), pair.b.get()};
    TestOwner* owners[2] = {&pair.owner_b, &pair.owner_a};
    for (int way = 0; way < 2; ++way) {
      for (std::uint64_t i = 0; i < 100; ++i)
        sends[way].emplace_back(random() % (i % 4 == 0 ? 3000 : 150), i, way);
      for (std::uint64_t i = 0; i < 100; ++i) recvs[way].emplace_back(sends[way][i].memory.size(), i);
    }
    // The order of the receives differs a little from the order of the sends.
    std::size_t sent[2] = {0, 0}, received[2] = {0, 0};
    std::vector<std::size_t> order(100);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = 0; i + 8 <= 100; i += 8) {
      std::shuffle(order.begin() + static_cast<long>(i), order.begin() + static_cast<long>(i + 8), random);
    }
    while (sent[0] + sent[1] + received[0] + received[1] < 400) {
      const int way = random() % 2;
      if (random() % 2 == 0 && sent[way] < 100) channels[way]->send(sends[way][sent[way]++]);
      if (random() % 2 == 0 && received[way] < 100) owners[way]->recv(recvs[way][order[received[way]++]]);
      pair.a->read(random() % 500), pair.b->read(random() % 500);
    }
    pair.run();
    for (int way = 0; way < 2; ++way) {
      for (std::size_t i = 0; i < 100; ++i) {
        ASSERT_TRUE(sends[way][i].ok() && recvs[way][i].ok()) << "seed " << seed << " message " << i;
        ASSERT_EQ(sends[way][i].memory, recvs[way][i].memory);
      }
    }
  }
}

}  // namespace
}  // namespace tutti
