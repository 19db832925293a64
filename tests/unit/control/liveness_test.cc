// Tests the parts of the control plane that need no network: the choice of links, the encoding of frames,
// handshakes and addresses, and the identity of processes.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "control/liveness/address.h"
#include "control/liveness/frame.h"
#include "control/liveness/process.h"
#include "control/liveness/ring.h"

namespace tutti::liveness {
namespace {

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

TEST(LivenessRing, IsSymmetricalSparseAndConnected) {
  for (const int p : {1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 100, 255}) {
    const std::vector<int> all = first_ranks(p);
    const double doublings = std::ceil(std::log2(p));
    for (const int rank : all) {
      const std::vector<int> links = neighbours(all, rank);
      EXPECT_LE(static_cast<double>(links.size()), 2 * doublings);
      EXPECT_FALSE(std::ranges::binary_search(links, rank));
      for (const int other : links) EXPECT_TRUE(std::ranges::binary_search(neighbours(all, other), rank));
    }
    // Every rank must be reachable from rank 0. The links are symmetric, so every rank can then
    // reach all others.
    std::set<int> reached = {0}, edge = {0};
    int hops = 0;
    for (; static_cast<int>(reached.size()) < p; ++hops) {
      ASSERT_FALSE(edge.empty());
      std::set<int> next;
      for (const int rank : edge) {
        for (const int other : neighbours(all, rank)) {
          if (reached.insert(other).second) next.insert(other);
        }
      }
      edge = next;
    }
    EXPECT_LE(hops, doublings / 2 + 1) << p;
  }
}

TEST(LivenessRing, NotesFindTheirWay) {
  for (const int p : {2, 3, 8, 13, 64}) {
    std::vector<int> some = first_ranks(2 * p);
    std::erase_if(some, [](int rank) { return rank % 3 == 1; });
    for (const int from : some) {
      for (const int to : some) {
        int at = from;
        std::size_t hops = 0;
        for (; at != to && hops <= some.size(); ++hops) at = next_hop(some, to, neighbours(some, at));
        EXPECT_EQ(at, to);
        EXPECT_LE(hops, 8u);
      }
    }
  }
}

TEST(LivenessFrame, ComesOutAsItWentIn) {
  Frame sent;
  sent.kind = FrameKind::lost;
  sent.hops = 7;
  sent.code = Code::peer_lost;
  sent.generation = 3;
  sent.origin = 1;
  sent.target = 2;
  sent.topic = 99;
  sent.key = 0x1122334455667788;
  sent.body = "why";
  const std::string bytes = encode(sent) + encode(Frame{});
  std::string_view rest = bytes;
  Frame got;
  for (std::size_t length = 0; length < frame_header_bytes + 3; ++length) {
    std::string_view part = rest.substr(0, length);
    EXPECT_EQ(take_frame(part, got), Parsed::incomplete) << length;
  }
  ASSERT_EQ(take_frame(rest, got), Parsed::whole);
  EXPECT_EQ(encode(got), encode(sent));
  ASSERT_EQ(take_frame(rest, got), Parsed::whole);
  EXPECT_EQ(got.kind, FrameKind::heartbeat);
  EXPECT_TRUE(rest.empty());
}

TEST(LivenessFrame, WhatIsNoneIsRefused) {
  const std::string good = encode(Frame{});
  const auto judged = [&](std::size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    std::string_view rest = bytes;
    Frame frame;
    return take_frame(rest, frame);
  };
  EXPECT_EQ(judged(0, 'x'), Parsed::wrong);  // magic
  EXPECT_EQ(judged(4, 9), Parsed::wrong);    // version
  EXPECT_EQ(judged(5, 0), Parsed::wrong);    // kind
  EXPECT_EQ(judged(5, 6), Parsed::wrong);
  EXPECT_EQ(judged(5, 2), Parsed::wrong);        // "lost", but no rank is named
  EXPECT_EQ(judged(7, 100), Parsed::wrong);      // code
  EXPECT_EQ(judged(27, 1), Parsed::wrong);       // a body of 16 MiB
  EXPECT_EQ(judged(28, 1), Parsed::wrong);       // a field that must be zero
  EXPECT_EQ(judged(24, 1), Parsed::incomplete);  // a body that has not arrived
}

TEST(LivenessFrame, AnyBytesAreJudged) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = encode(Frame{.kind = FrameKind::publish, .body = std::string(random() % 50, 'x')});
    for (unsigned i = random() % 4; i > 0; --i) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    std::string_view rest = bytes;
    Frame frame;
    while (take_frame(rest, frame) == Parsed::whole) {
    }
    static_cast<void>(decode_hello(bytes));
    static_cast<void>(decode_answer(bytes));
  }
}

TEST(LivenessHello, ComesOutAsItWentIn) {
  const Hello hello{.from = 1, .to = 2, .generation = 3, .job = 4, .from_nonce = 5, .to_nonce = 6};
  const std::string bytes = encode(hello);
  ASSERT_EQ(bytes.size(), hello_bytes);
  const auto got = decode_hello(bytes);
  ASSERT_TRUE(got);
  EXPECT_EQ(encode(*got), bytes);
  EXPECT_FALSE(decode_hello(bytes.substr(1) + " "));
  EXPECT_FALSE(begins_like_hello("GET / HTTP/1.1"));
  EXPECT_TRUE(begins_like_hello("tut"));
  const std::string answer = encode(Answer{Verdict::fenced, 7});
  ASSERT_EQ(answer.size(), answer_bytes);
  EXPECT_EQ(decode_answer(answer)->verdict, Verdict::fenced);
  EXPECT_FALSE(decode_answer(bytes));
}

TEST(LivenessAddress, ComesOutAsItWentIn) {
  for (const std::string host : {"10.0.0.1", "::1", "node7.example"}) {
    const Address address{host, 4711, 0x8c1f00d2b5a69e37, {4026531836, 123456}};
    const auto got = parse_address(format(address));
    ASSERT_TRUE(got) << format(address);
    EXPECT_EQ(format(*got), format(address));
    EXPECT_EQ(got->host, host);
  }
  for (const std::string wrong :
       {"", "10.0.0.1:4711", "10.0.0.1:0/8c1f00d2b5a69e37/1/1", "10.0.0.1:65536/8c1f00d2b5a69e37/1/1",
        ":1/8c1f00d2b5a69e37/1/1", "a:1/8c1f00d2b5a69e3/1/1", "a:1/8c1f00d2b5a69e3x/1/1",
        "a:1/8c1f00d2b5a69e37/1/", "a:1/8c1f00d2b5a69e37/1/1/1", "a:1/8c1f00d2b5a69e37/-1/1"}) {
    EXPECT_FALSE(parse_address(wrong)) << wrong;
  }
}

TEST(LivenessProcess, IsProvedBeforeItIsWatched) {
  const ProcessIdentity self = own_identity();
  ASSERT_NE(self.start_time, 0u);
  EXPECT_TRUE(watch_process(getpid(), self));
  EXPECT_FALSE(watch_process(getpid(), {self.pid_namespace, self.start_time + 1}));
  EXPECT_FALSE(watch_process(getpid(), {self.pid_namespace + 1, self.start_time}));
  EXPECT_FALSE(watch_process(getpid(), {}));
}

}  // namespace
}  // namespace tutti::liveness
