#include <deque>
#include <random>

#include "tests/unit/transport/stream_pair.h"

namespace tutti {
namespace {

FrameHeader frame(FrameType type, std::uint32_t id = 0, std::uint32_t payload = 0, std::uint64_t offset = 0,
                  std::uint64_t bytes = 0, std::uint64_t sequence = 0) {
  FrameHeader header;
  header.type = type;
  header.id = id;
  header.payload = payload;
  header.offset = offset;
  header.message.bytes = bytes;
  header.message.tag = {1, 0, sequence};
  return header;
}

// `Hostile` plays a peer that attacks `b`.
struct Hostile : ::testing::Test {
  StreamPair pair{small_limits};
  std::vector<std::byte> junk = std::vector<std::byte>(100'000, std::byte{0xab});

  void feed(const FrameHeader& header) { pair.b->feed(header, std::span(junk).first(header.payload)); }
  void expect_refused() {
    EXPECT_EQ(pair.b->status().code(), Code::protocol_error) << pair.b->status().to_string();
    EXPECT_NE(pair.b->status().message().find("rank 0 (host host0, pid 100)"), std::string::npos);
    EXPECT_EQ(pair.b->status().peer(), 0);
    EXPECT_TRUE(pair.b->closed);
    EXPECT_EQ(pair.owner_b.downs.size(), 1u);
  }
  void expect_fine() { EXPECT_TRUE(pair.b->status().ok()) << pair.b->status().to_string(); }
};

TEST_F(Hostile, EagerLongerThanAllowed) { feed(frame(FrameType::eager, 0, 101, 0, 101)), expect_refused(); }
TEST_F(Hostile, EagerWhoseLengthsDiffer) { feed(frame(FrameType::eager, 0, 10, 0, 11)), expect_refused(); }
TEST_F(Hostile, RequestForASmallMessage) { feed(frame(FrameType::request, 0, 0, 0, 100)), expect_refused(); }
TEST_F(Hostile, RequestWithPayload) { feed(frame(FrameType::request, 0, 1, 0, 1000)), expect_refused(); }
TEST_F(Hostile, RequestWithImpossibleId) {
  feed(frame(FrameType::request, 4096, 0, 0, 1000)), expect_refused();
}
TEST_F(Hostile, ClearForNothing) { feed(frame(FrameType::clear, 0)), expect_refused(); }
TEST_F(Hostile, RefuseForNothing) { feed(frame(FrameType::refuse, 5)), expect_refused(); }
TEST_F(Hostile, CancelForNothing) { feed(frame(FrameType::cancel, 5)), expect_refused(); }
TEST_F(Hostile, DataForNothing) { feed(frame(FrameType::data, 0xffffffff, 64)), expect_refused(); }
TEST_F(Hostile, CreditForNothing) { feed(frame(FrameType::credit, 0, 0, 1)), expect_refused(); }
TEST_F(Hostile, HugeCredit) { feed(frame(FrameType::credit, 0, 0, ~std::uint64_t{0})), expect_refused(); }
TEST_F(Hostile, CreditWithPayload) { feed(frame(FrameType::credit, 0, 64)), expect_refused(); }
TEST_F(Hostile, GoodbyeWithPayload) { feed(frame(FrameType::goodbye, 0, 64)), expect_refused(); }
TEST_F(Hostile, Junk) {
  pair.b->feed(junk);
  EXPECT_EQ(pair.b->status().code(), Code::protocol_error);
}

TEST_F(Hostile, BadAborts) {
  for (const int what : {0, 1, 2}) {
    StreamPair fresh(small_limits);
    FrameHeader header = frame(FrameType::abort, what == 2 ? 3 : 0, what == 1 ? 1025 : 10);
    header.code = what == 0 ? Code::ok : Code::timeout;
    fresh.b->feed(header, std::span(junk).first(header.payload));
    EXPECT_EQ(fresh.b->status().code(), Code::protocol_error);
    EXPECT_TRUE(fresh.owner_b.aborts.empty());
  }
}

TEST_F(Hostile, EagerBeyondItsCredit) {
  for (int i = 0; i < 32; ++i) feed(frame(FrameType::eager));
  expect_fine();
  feed(frame(FrameType::eager));
  expect_refused();
}

TEST_F(Hostile, TooManyRequests) {
  for (std::uint32_t i = 0; i < StreamLimits::max_unanswered; ++i)
    feed(frame(FrameType::request, i, 0, 0, 1000));
  expect_fine();
  feed(frame(FrameType::request, StreamLimits::max_unanswered, 0, 0, 1000));
  expect_refused();
}

TEST_F(Hostile, TheSameIdTwice) {
  feed(frame(FrameType::request, 7, 0, 0, 1000));
  feed(frame(FrameType::request, 7 | 1 << 16, 0, 0, 1000));
  expect_refused();
}

TEST_F(Hostile, DataBeforeItsClear) {
  feed(frame(FrameType::request, 7, 0, 0, 1000));
  feed(frame(FrameType::data, 7, 64));
  expect_refused();
}

// An announced length of 2^63 is harmless while no receive matches the message.
TEST_F(Hostile, HugeRequest) {
  feed(frame(FrameType::request, 7, 0, 0, std::uint64_t{1} << 63));
  feed(frame(FrameType::request, 8, 0, 0, ~std::uint64_t{0}));
  expect_fine();
  EXPECT_EQ(pair.owner_b.kept.size(), 2u);
}

struct BadData {
  std::uint32_t id;
  std::uint32_t payload;
  std::uint64_t offset;
};
class HostileData : public Hostile, public ::testing::WithParamInterface<BadData> {};

TEST_P(HostileData, IsRefused) {
  TestRecv recv(1000);
  pair.owner_b.recv(recv);
  feed(frame(FrameType::request, 7, 0, 0, 1000));
  feed(frame(FrameType::data, 7, 64, 0));
  expect_fine();
  feed(frame(FrameType::data, GetParam().id, GetParam().payload, GetParam().offset));
  expect_refused();
  EXPECT_TRUE(recv.failed(Code::protocol_error));
}
INSTANTIATE_TEST_SUITE_P(Fields, HostileData,
                         ::testing::Values(BadData{7 | 1 << 16, 64, 64},          // stale id
                                           BadData{8, 64, 64},                    // other id
                                           BadData{0xffffffff, 64, 64},           // impossible id
                                           BadData{7, 64, 0},                     // the same part again
                                           BadData{7, 64, 128},                   // a gap
                                           BadData{7, 64, ~std::uint64_t{63}},    // wraps around
                                           BadData{7, 0, 64},                     // empty
                                           BadData{7, 63, 64},                    // an odd length
                                           BadData{7, 320, 64},                   // longer than a fragment
                                           BadData{7, 0xffffffc0 % 100'000, 64},  // far too long
                                           BadData{7, 257, 64}));

// A payload on a stripe (an additional connection) must not be small, since each payload takes an entry in
// the table of expected payloads.
TEST_F(Hostile, SmallPayloadsOnAStripe) {
  pair.b->accept_stripes();
  TestRecv recv(200);
  pair.owner_b.recv(recv);
  feed(frame(FrameType::request, 7, 0, 0, 200));
  FrameHeader data = frame(FrameType::data, 7, 192, 0);
  data.stripe = 1;
  pair.b->feed(data);
  expect_refused();
  EXPECT_TRUE(recv.failed(Code::protocol_error));
}

// A peer announces a payload on a stripe, but this transport has no stripes. The payload would never arrive,
// so the receive would wait forever.
TEST_F(Hostile, StripesOfATransportThatHasNone) {
  constexpr std::uint32_t bytes = StreamLimits::min_stripe_payload;
  TestRecv recv(bytes);
  pair.owner_b.recv(recv);
  feed(frame(FrameType::request, 7, 0, 0, bytes));
  FrameHeader data = frame(FrameType::data, 7, bytes, 0);
  data.stripe = 1;
  pair.b->feed(data);
  expect_refused();
  EXPECT_TRUE(recv.failed(Code::protocol_error));
}

TEST_F(Hostile, OnlyDataGoesByStripes) {
  FrameHeader request = frame(FrameType::request, 7, 0, 0, 200);
  request.stripe = 1;
  pair.b->feed(request);
  EXPECT_EQ(pair.b->status().code(), Code::protocol_error);
  EXPECT_TRUE(pair.owner_b.kept.empty());
}

TEST_F(Hostile, DataBeyondTheEnd) {
  TestRecv recv(200);
  pair.owner_b.recv(recv);
  feed(frame(FrameType::request, 7, 0, 0, 200));
  feed(frame(FrameType::data, 7, 192, 0));
  feed(frame(FrameType::data, 7, 64, 192));
  expect_refused();
  EXPECT_TRUE(recv.failed(Code::protocol_error));
}

TEST_F(Hostile, AfterTheEnd) {
  TestRecv recv(200);
  pair.owner_b.recv(recv);
  feed(frame(FrameType::request, 7, 0, 0, 200));
  feed(frame(FrameType::data, 7, 200, 0));
  EXPECT_TRUE(recv.ok());
  feed(frame(FrameType::data, 7, 64, 0));
  expect_refused();
}

TEST_F(Hostile, ClearsTwice) {
  TestSend send(1000);
  pair.b->room = 100;
  pair.b->send(send);
  feed(frame(FrameType::clear, 1 << 16));
  expect_fine();
  feed(frame(FrameType::clear, 1 << 16));
  expect_refused();
  EXPECT_TRUE(send.failed(Code::protocol_error));
}

// A peer sends endless requests and cancels, but does not read. Our answers must not accumulate.
TEST_F(Hostile, ControlFramesAreBounded) {
  pair.b->room = 10;
  pair.owner_b.discard_all = true;
  for (std::size_t i = 0; i < 2 * StreamLimits::max_control && pair.b->status().ok(); ++i) {
    feed(frame(FrameType::request, 7, 0, 0, 1000));
    if (pair.b->status().ok()) feed(frame(FrameType::cancel, 7));
  }
  expect_refused();
}

TEST_F(Hostile, AnythingAfterGoodbyeIsIgnored) {
  feed(frame(FrameType::goodbye));
  EXPECT_EQ(pair.b->status().code(), Code::aborted);
  feed(frame(FrameType::data, 7, 64, 0));
  EXPECT_EQ(pair.owner_b.downs.size(), 1u);
}

// Frames that are almost right must do no harm in any order. (The sanitizers check this.) At worst, the
// channel refuses them.
TEST_F(Hostile, RandomFrames) {
  std::size_t refused = 0;
  for (std::uint32_t seed = 1; seed <= 3000; ++seed) {
    std::mt19937 random(seed);
    StreamPair fresh(small_limits);
    if (random() % 2 == 0) fresh.b->room = 200;
    std::deque<TestSend> sends;
    std::deque<TestRecv> recvs;
    for (std::uint64_t i = 0; i < 3; ++i) {
      fresh.b->send(sends.emplace_back(random() % 400, i));
      fresh.owner_b.recv(recvs.emplace_back(300, i));
    }
    for (int i = 0; i < 40 && !fresh.b->closed; ++i) {
      const auto pick = [&](std::initializer_list<std::uint64_t> values) {
        return *(values.begin() + random() % values.size());
      };
      FrameHeader header;
      header.type = static_cast<FrameType>(1 + random() % (random() % 8 == 0 ? 9 : 7));
      header.code = static_cast<Code>(random() % 12);
      header.id = static_cast<std::uint32_t>(pick({0, 1, 1 << 16, (1 << 16) + 1, (2 << 16), 3, 4095, 70000}));
      header.offset = pick({0, 0, 64, 128, 256, 300, 1000});
      header.message.tag = {1, 0, random() % 5};
      header.message.bytes = pick({0, 8, 100, 300, 300, 300, 1000});
      header.payload =
          static_cast<std::uint32_t>(header.type == FrameType::eager  ? header.message.bytes
                                     : header.type == FrameType::data ? pick({64, 128, 256, 300, 44})
                                                                      : 0);
      // This test never gives a receive a message that is longer than the receive's buffer, because
      // the mesh does not do so either.
      for (TestRecv& recv : recvs) {
        if (recv.completions == 0 && recv.tag == header.message.tag && header.message.bytes > recv.bytes) {
          std::erase(fresh.owner_b.posted, &recv);
        }
      }
      fresh.b->feed(header, std::span(junk).first(header.payload));
      if (random() % 8 == 0 && !fresh.b->closed) fresh.a->read(1 << 20);
    }
    refused += fresh.b->status().code() == Code::protocol_error;
    fresh.b->close(Status(Code::aborted, "end"), false);
    for (const TestSend& send : sends) EXPECT_EQ(send.completions, 1);
  }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace tutti
