#include <deque>

#include "tests/support/poisoned.h"
#include "tests/unit/transport/stream_pair.h"
#include "transport/stream/remote_memory.h"

// This file tests grants (docs/seams/grants.md) over a pipe. The test decides when a remote write ends.
namespace tutti {
namespace {

// `Regions` is the registered memory of one rank. The key of every region is 5.
class Regions final : public RemoteMemory {
 public:
  Result<std::unique_ptr<RegisteredMemory>> add(std::span<std::byte> region) override {
    if (refuses) return Status(Code::resource_exhausted, "no more");
    regions.push_back(region);
    return std::unique_ptr<RegisteredMemory>();
  }
  std::optional<RemotePlace> find(std::span<const std::byte> memory) const override {
    for (const std::span<std::byte> region : regions) {
      if (memory.data() < region.data() || memory.data() + memory.size() > region.data() + region.size())
        continue;
      return RemotePlace{reinterpret_cast<std::uintptr_t>(memory.data()), 5};
    }
    return std::nullopt;
  }
  std::vector<std::span<std::byte>> regions;
  bool refuses = false;
};

// `a` sends, and `b` grants memory to `a`.
struct StreamGrants : ::testing::Test {
  StreamGrants() {
    pair.a->write_remotely(of_a);
    pair.b->write_remotely(of_b);
  }
  void make_late() { pair.a->late_writes = pair.b->late_writes = true; }
  // Posts `recv` and `send`. The memory of `recv` is registered unless `staged` is true.
  void post(TestSend& send, TestRecv& recv, bool staged = false) {
    if (!staged) of_b.regions.emplace_back(recv.memory);
    pair.owner_b.recv(recv);
    pair.a->send(send);
  }
  Regions of_a, of_b;
  StreamPair pair{small_limits};
};

const Status enough(Code::timeout, "enough", 0);

TEST_F(StreamGrants, InPlaceOrStaged) {
  for (const bool staged : {false, true}) {
    for (const std::size_t bytes : {101u, 255u, 256u, 257u, 1024u, 10'000u}) {
      TestSend send(bytes);
      TestRecv recv(bytes);
      post(send, recv, staged);
      pair.run();
      ASSERT_TRUE(send.ok() && recv.ok()) << bytes;
      EXPECT_EQ(recv.memory, send.memory);
      of_b.regions.resize(staged ? 1 : 0);
    }
  }
  EXPECT_EQ(pair.b->counters().bytes_in_place, pair.b->counters().bytes_staged);
}

TEST_F(StreamGrants, WithoutStagingMemoryMessagesAreCleared) {
  of_b.refuses = true;
  TestSend send(10'000);
  TestRecv recv(10'000);
  post(send, recv, true);
  pair.run();
  ASSERT_TRUE(send.ok() && recv.ok());
  EXPECT_EQ(recv.memory, send.memory);
  EXPECT_EQ(pair.b->counters().bytes_staged, 0u);
}

TEST_F(StreamGrants, ACancelledReceiveEndsWhenTheSenderWritesNoMore) {
  make_late();
  TestSend send(1000);
  TestRecv recv(1000);
  post(send, recv);
  pair.run();
  ASSERT_NE(pair.a->under_way, nullptr);
  pair.b->cancel_recv(recv, enough);
  pair.b->cancel_recv(recv, enough);
  pair.run();
  EXPECT_EQ(recv.completions + send.completions, 0);
  pair.a->end_write();
  pair.run();
  EXPECT_TRUE(recv.failed(Code::timeout) && send.failed(Code::timeout));
  EXPECT_TRUE(pair.a->status().ok() && pair.b->status().ok());
}

TEST_F(StreamGrants, ACancelledReceiveOfStagedDataEndsAtOnce) {
  make_late();
  TestSend send(5000);
  TestRecv recv(5000);
  post(send, recv, true);
  pair.run();
  pair.b->cancel_recv(recv, enough);
  EXPECT_TRUE(recv.failed(Code::timeout));
  const test::Poisoned untouchable(recv.memory);
  while (pair.a->under_way != nullptr) {
    pair.a->end_write();
    pair.run();
  }
  EXPECT_TRUE(send.failed(Code::timeout));
}

TEST_F(StreamGrants, ACancelledSendEndsWhenItsWriteHasEnded) {
  for (const bool last_piece : {false, true}) {
    make_late();
    TestSend send(500);
    TestRecv recv(500);
    post(send, recv);
    pair.run();
    if (last_piece) pair.a->end_write();
    ASSERT_NE(pair.a->under_way, nullptr);
    pair.a->cancel_send(send, enough);
    pair.a->cancel_send(send, enough);
    pair.run();
    EXPECT_EQ(send.completions + recv.completions, 0);
    pair.a->end_write();
    EXPECT_TRUE(send.failed(Code::timeout));
    pair.run();
    EXPECT_EQ(recv.completions, 1);
    EXPECT_EQ(recv.status.ok(), last_piece) << "the whole message had left";
    of_b.regions.clear();
  }
}

// The receiver answers a message with a grant. In the meantime the sender cancels the message. The
// sender then begins another message, which gets the same place in the sender's table. The sender
// must ignore the late grant.
TEST_F(StreamGrants, ALateGrantIsIgnored) {
  TestSend first(1000, 1), second(1000, 2);
  TestRecv first_recv(1000, 1), second_recv(1000, 2);
  post(first, first_recv);
  pair.b->read(1 << 20);  // `b` grants its memory
  pair.a->cancel_send(first, enough);
  post(second, second_recv);
  pair.run();
  EXPECT_TRUE(first.failed(Code::timeout) && first_recv.failed(Code::timeout));
  EXPECT_TRUE(second.ok() && second_recv.ok());
  EXPECT_EQ(first_recv.memory, std::vector<std::byte>(1000));
}

// An operation must not end while one of its remote writes is running, even after the connection
// has ended.
TEST_F(StreamGrants, AfterAFailureOperationsWaitForWrites) {
  for (const bool clean : {false, true}) {
    Regions memory_a, memory_b;
    StreamPair fresh(small_limits);
    fresh.a->write_remotely(memory_a);
    fresh.b->write_remotely(memory_b);
    fresh.a->late_writes = fresh.b->late_writes = true;
    TestSend send(1000, 1), waiting(1000, 3);
    TestRecv in_place(1000, 1), staged(1000, 2);
    TestSend to_stage(1000, 2);
    memory_b.regions.emplace_back(in_place.memory);
    for (TestRecv* recv : {&in_place, &staged}) fresh.owner_b.recv(*recv);
    for (TestSend* op : {&send, &to_stage, &waiting}) fresh.a->send(*op);
    fresh.run();
    for (PipeChannel* end : {fresh.b.get(), fresh.a.get()}) end->close(enough, clean);
    EXPECT_TRUE(staged.failed(Code::timeout) && to_stage.failed(Code::timeout) &&
                waiting.failed(Code::timeout));
    EXPECT_EQ(in_place.completions + send.completions, 0);
    fresh.a->end_write();
    EXPECT_EQ(send.completions, clean ? 1 : 0) << "the pipe is open after a clean close";
    fresh.run();
    if (clean) {
      fresh.b->close(enough, false);
      fresh.a->close(enough, false);
    }
    EXPECT_FALSE(fresh.a->drained() || fresh.b->drained());
    EXPECT_EQ(in_place.completions, 0);
    for (PipeChannel* end : {fresh.a.get(), fresh.b.get()}) {
      end->writes_over();
      EXPECT_TRUE(end->drained());
    }
    EXPECT_TRUE(send.failed(Code::timeout) && in_place.failed(Code::timeout));
  }
}

FrameHeader grant_frame(std::uint32_t id, std::uint64_t offset, std::uint64_t bytes,
                        std::uint64_t address = 4096) {
  return to_header(id, {offset, bytes, {address, 5}});
}
FrameHeader written_frame(std::uint32_t id, std::uint64_t offset, std::uint64_t bytes) {
  FrameHeader header;
  header.type = FrameType::written;
  header.id = id;
  header.offset = offset;
  header.message.bytes = bytes;
  return header;
}

// `a` has announced a message of 1000 bytes with the id 1 << 16. The peer answers with invalid grants.
TEST(HostileGrants, GrantsAreChecked) {
  constexpr std::uint32_t id = 1 << 16;
  const std::vector<std::vector<FrameHeader>> attacks = {
      {grant_frame(1 << 16 | 1, 0, 256)},
      {grant_frame(0xffffffff, 0, 256)},
      {grant_frame(id, 64, 256)},
      {grant_frame(id, 0, 0)},
      {grant_frame(id, 0, 1001)},
      {grant_frame(id, 0, ~std::uint64_t{0})},
      {grant_frame(id, 0, 256), grant_frame(id, 0, 256)},
      {grant_frame(id, 0, 256), grant_frame(id, 256, 745)},
      {grant_frame(id, 0, 256, ~std::uint64_t{0} - 100)},
      {grant_frame(id, 0, 100), grant_frame(id, 100, 100), grant_frame(id, 200, 100),
       grant_frame(id, 300, 100), grant_frame(id, 400, 100), grant_frame(id, 500, 100),
       grant_frame(id, 600, 100), grant_frame(id, 700, 100), grant_frame(id, 800, 100)},
  };
  for (std::size_t i = 0; i < attacks.size(); ++i) {
    Regions memory;
    StreamPair pair(small_limits);
    pair.a->write_remotely(memory);
    TestSend send(1000);
    pair.a->send(send);
    pair.a->late_writes = true;
    pair.room(0);
    for (const FrameHeader& header : attacks[i]) pair.a->feed(header);
    EXPECT_EQ(pair.a->status().code(), Code::protocol_error) << "attack " << i;
    EXPECT_TRUE(send.failed(Code::protocol_error)) << "attack " << i;
    pair.a->writes_over();
  }
}

// `b` has granted 1000 bytes of registered memory, or four staging chunks of at most 256 bytes.
TEST(HostileGrants, WritesAreChecked) {
  const std::vector<std::vector<FrameHeader>> attacks = {
      {written_frame(8, 0, 256)}, {written_frame(7, 256, 256)},
      {written_frame(7, 0, 0)},   {written_frame(7, 0, 1000)},
      {written_frame(7, 0, 100)}, {written_frame(7, 0, 256), written_frame(7, 0, 256)},
      {written_frame(9, 0, 256)},
  };
  for (const bool staged : {false, true}) {
    for (std::size_t i = 0; i < attacks.size(); ++i) {
      Regions memory;
      StreamPair pair(small_limits);
      pair.b->write_remotely(memory);
      TestRecv recv(1000, 1);
      if (!staged) memory.regions.emplace_back(recv.memory);
      pair.owner_b.recv(recv);
      FrameHeader request;
      request.type = FrameType::request;
      request.id = 7;
      request.message.bytes = 1000;
      request.message.tag = {1, 0, 1};
      pair.b->feed(request);
      request.id = 9;  // no receive has claimed this message
      request.message.tag.sequence = 2;
      pair.b->feed(request);
      ASSERT_TRUE(pair.b->status().ok());
      for (const FrameHeader& header : attacks[i]) pair.b->feed(header);
      EXPECT_EQ(pair.b->status().code(), Code::protocol_error) << "attack " << i;
      EXPECT_TRUE(recv.failed(Code::protocol_error)) << "attack " << i;
    }
  }
}

TEST(HostileGrants, APipeWithoutRemoteWritesKnowsNone) {
  for (const FrameHeader& header : {grant_frame(1 << 16, 0, 256), written_frame(0, 0, 256)}) {
    StreamPair pair(small_limits);
    TestSend send(1000);
    pair.a->send(send);
    pair.a->feed(header);
    EXPECT_EQ(pair.a->status().code(), Code::protocol_error);
  }
}

TEST(GrantHeader, HoldsAllOfAGrant) {
  const Grant grant{1, 2, {3, 0x0123456789abcdef, 0xfedcba9876543210}};
  EncodedFrameHeader encoded;
  encode(to_header(7, grant), encoded);
  EXPECT_EQ(type_of(encoded), FrameType::grant);
  FrameHeader header;
  ASSERT_TRUE(decode(encoded, header));
  const Grant read = to_grant(header);
  EXPECT_EQ(header.id, 7u);
  EXPECT_EQ(read.offset, grant.offset);
  EXPECT_EQ(read.bytes, grant.bytes);
  EXPECT_EQ(read.place.address, grant.place.address);
  EXPECT_EQ(read.place.key, grant.place.key);
  EXPECT_EQ(read.place.more_keys, grant.place.more_keys);
}

}  // namespace
}  // namespace tutti
