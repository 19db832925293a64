// Tests what a rank does if its peer breaks the protocol, or leaves. The test plays the peer, rank 1.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/security/messages.h"
#include "tests/verbs/end.h"
#include "tests/verbs/lone_rank.h"
#include "transport/stream/frame.h"
#include "transport/verbs/gid.h"

namespace tutti::verbs {
namespace {

using conformance::collective;
using conformance::Recv;
using conformance::Send;
using testing::HasSubstr;

// A hello counts only if it comes from the process that has published itself as rank 1, and is meant for rank
// 0.
TEST(VerbsMember, WithoutTheNoncesIsClosed) {
  const LoneRank rank;
  for (const auto& spoil : std::initializer_list<std::function<void(Note&)>>{
           [](Note& note) { ++note.from_nonce; }, [](Note& note) { ++note.to_nonce; },
           [](Note& note) { note.from = 0; }, [](Note& note) { note.from = 7; },
           [](Note& note) { note.to = 1; }, [](Note& note) { note.kind = NoteKind::go; },
           [](Note& note) { ++note.version; }}) {
    Note hello = rank.hello();
    spoil(hello);
    RawPeer peer(rank.address());
    peer.say(hello);
    EXPECT_TRUE(peer.is_closed());
  }
  EXPECT_EQ(RawPeer(rank.address()).ask(rank.hello()).kind, NoteKind::welcome);
}

// These queue pairs have too few slots, slots that are too small, or an MTU that does not exist.
TEST(VerbsMember, ThatOffersAnImpossibleQueuePairIsRefused) {
  for (const auto& spoil : std::initializer_list<std::function<void(End&)>>{
           [](End& end) { end.slots = 3; }, [](End& end) { end.slot_bytes = 127; },
           [](End& end) { end.mtu = 0; }, [](End& end) { end.mtu = IBV_MTU_4096 + 1; }}) {
    const LoneRank rank;
    Note hello = rank.hello();
    spoil(hello.end);
    const Note answer = RawPeer(rank.address()).ask(hello);
    EXPECT_EQ(answer.kind, NoteKind::refused);
    EXPECT_THAT(answer.why.failure(0).message(), HasSubstr("impossible queue pair"));
  }
}

// Rank 0 has nothing to send, so it waits for the next offer of rank 1.
TEST(VerbsMember, ThatOffersAnUnknownKindOfAddressIsToldSo) {
  const Door door;
  LoneRank rank({door.address()});
  Note hello = rank.hello();
  hello.end.kind = 200;
  EXPECT_EQ(RawPeer(rank.address()).ask(hello).kind, NoteKind::cannot);
  rank.node().drive([&] { EXPECT_FALSE(door.is_knocked()); });
  EXPECT_EQ(RawPeer(rank.address()).ask(rank.hello()).kind, NoteKind::welcome);
}

// A `VerbsTalker` plays rank 1, with a queue pair that is connected to rank 0. It has sent one message.
class VerbsTalker : public testing::Test {
 protected:
  VerbsTalker() : end_(provider::Provider::functions(), "fake1"), peer_(rank_.address()) {
    Note hello = rank_.hello();
    const test::End::Mate own = end_.mate();
    hello.end.queue_pair = own.pair;
    hello.end.sequence = own.sequence;
    std::copy(std::begin(own.gid.raw), std::end(own.gid.raw), hello.end.gid.begin());
    const Note answer = peer_.ask(hello);
    test::End::Mate mate{answer.end.queue_pair, {}, answer.end.sequence, IBV_MTU_1024};
    std::copy(answer.end.gid.begin(), answer.end.gid.end(), std::begin(mate.gid.raw));
    end_.connect(mate);
    for (std::uint64_t id = 0; id < 8; ++id) EXPECT_EQ(end_.post_receive(id, 1024), 0);
    // Rank 1 sends no note `go`. Its first frame tells rank 0 the same: packets have gone both ways.
    Recv recv(8, 1, collective(1));
    rank_.node().post(recv);
    say_frame(Send(8, collective(1), 1));
    EXPECT_TRUE(recv.wait().ok()) << recv.status.to_string();
    EXPECT_TRUE(recv.holds(1));
  }

  // Sends a small message, except its last `missing` bytes.
  void say_frame(const Send& message, std::size_t missing = 0) {
    FrameHeader header;
    header.type = FrameType::eager;
    header.payload = static_cast<std::uint32_t>(message.memory.size());
    header.message = message.header;
    encode(header, std::span(end_.memory()).first<frame_header_bytes>());
    std::copy(message.memory.begin(), message.memory.end(), end_.memory().begin() + frame_header_bytes);
    EXPECT_EQ(end_.post_send_with_immediate(1, frame_header_bytes + message.memory.size() - missing, 0), 0);
  }
  // Does `harm` while rank 0 waits for another message, and returns how that message ends.
  Status status_after(const std::function<void()>& harm) {
    rank_.node().post(recv_);
    harm();
    return recv_.wait();
  }
  void expect_protocol_error(const std::string& text, const std::function<void()>& harm) {
    const Status status = status_after(harm);
    EXPECT_EQ(status.code(), Code::protocol_error);
    EXPECT_EQ(status.peer(), 1);
    EXPECT_THAT(status.message(), HasSubstr(text));
  }

  Recv recv_{8, 1, collective(2)};
  LoneRank rank_;
  test::End end_;
  RawPeer peer_;
};

TEST_F(VerbsTalker, WhoSendsNonsenseIsToBlame) {
  std::ranges::fill(end_.memory(), std::byte{0x5a});
  expect_protocol_error("not a frame", [&] { end_.post_send_with_immediate(2, frame_header_bytes, 0); });
}

TEST_F(VerbsTalker, WhoSendsAPartOfAHeaderIsToBlame) {
  expect_protocol_error("not a frame", [&] { end_.post_send_with_immediate(2, frame_header_bytes - 1, 0); });
}

// If rank 0 believed the claim, it would send packets for which its peer has posted no receives.
TEST_F(VerbsTalker, WhoClaimsToHaveReceivedWhatWasNeverSentIsToBlame) {
  expect_protocol_error("never sent", [&] { end_.post_send_with_immediate(2, 0, 1000); });
}

TEST_F(VerbsTalker, WhoSendsAPacketWithoutCreditIsToBlame) {
  expect_protocol_error("a packet that tutti does not send", [&] { end_.post_send(2, 0); });
}

// A write with an immediate value says that a piece of a message is complete. Here, there is no message.
TEST_F(VerbsTalker, WhoWritesAMessageThatWasNotGrantedIsToBlame) {
  expect_protocol_error("a write that was not granted",
                        [&] { end_.post_write_with_immediate(2, 0, end_, 0); });
}

TEST_F(VerbsTalker, WhoWritesInTheMiddleOfAMessageIsToBlame) {
  expect_protocol_error("a write in the middle of something else", [&] {
    say_frame(Send(8, collective(2), 1), 4);
    end_.post_write_with_immediate(2, 0, end_, 0);
  });
}

TEST_F(VerbsTalker, WhoSendsAnUnexpectedNoteIsToBlame) {
  Note note = rank_.hello();
  note.kind = NoteKind::welcome;
  expect_protocol_error("an unexpected note", [&] { peer_.say(note); });
}

TEST_F(VerbsTalker, WhoSendsSomethingElseThanNotesIsLost) {
  Note note = rank_.hello();
  ++note.magic;
  EXPECT_THAT(status_after([&] { peer_.say(note); }).message(), HasSubstr("it broke the protocol"));
}

// Only a rank that connects without a token may get the notice of a guard, in place of the first note.
TEST_F(VerbsTalker, WhoSendsTheNoticeOfAGuardLaterIsLost) {
  Note note = rank_.hello();
  std::memcpy(static_cast<void*>(&note), security::notice_magic.data(), security::notice_magic.size());
  EXPECT_THAT(status_after([&] { peer_.say(note); }).message(), HasSubstr("it broke the protocol"));
}

// `BetweenLooks` runs a function once, after the transport has looked for packets and before the driver looks
// for the end of a link. It lets a few passes of the driver go by first, since a pass in which something
// happens does not look for the ends of links.
struct BetweenLooks final : Pollable {
  explicit BetweenLooks(std::function<void()> what) : run(std::move(what)) {}
  bool poll() override {
    if (++polls == 4) run();
    return false;
  }
  const std::function<void()> run;
  int polls = 0;
};

// The end of the link is seen before the last packet is.
TEST_F(VerbsTalker, WhoLeavesIsHeardToTheEnd) {
  rank_.library().hold();
  say_frame(Send(8, collective(2), 2));
  rank_.node().post(recv_);
  BetweenLooks leave([&] {
    peer_.hang_up();
    rank_.library().release();
  });
  Driver& driver = rank_.node().driver;
  rank_.node().drive([&] { driver.add(leave); });
  for (int i = 0; i < 100; ++i) driver.progress();
  EXPECT_TRUE(recv_.wait().ok()) << recv_.status.to_string();
  EXPECT_TRUE(recv_.holds(2));
  rank_.node().drive([&] { driver.remove(leave); });
}

}  // namespace
}  // namespace tutti::verbs
