#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "tests/unit/transport/shm_world.h"
#include "transport/meeting/listener.h"
#include "transport/shm/shared_memory.h"

namespace tutti::shm {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t raw_nonce = 0xabcdef;

int open_descriptors() {
  int count = 0;
  for (int number = 0; number < 4096; ++number) count += fcntl(number, F_GETFD) >= 0;
  return count;
}

std::string raw_address(const std::string& name) { return format(Address{name, geteuid(), raw_nonce}); }

// Ranks 0 (the leader) and 1 are honest. Rank 2 is the test.
class ShmMember : public ::testing::Test {
 protected:
  ShmMember()
      : world(2, raw_address("unused")),
        leader(world[0], ranks(3), key, bytes),
        other(world[1], ranks(3), key, bytes),
        raw(world.peers[0].addresses["shm"]) {
    leader.post();
    other.post();
  }
  void ask() { raw.send(share_note(world, 2, 3), {bell.get()}); }
  void take_offer() {
    ASSERT_EQ(raw.receive(offer), 0);
    ASSERT_EQ(offer.kind, NoteKind::offer);
    ASSERT_EQ(raw.descriptors.size(), 4u);
  }
  void prove(std::uint64_t proof) {
    ASSERT_TRUE(segment.map(std::move(raw.descriptors[0]), segment_bytes(leader)).ok());
    *proof_place(segment, 2) = proof;
    Note note;
    note.kind = NoteKind::mapped;
    raw.send(note);
  }
  void expect_none(Code code, const std::string& why) {
    for (Wish* wish : {&leader, &other}) {
      EXPECT_EQ(wish->wait().code(), code) << wish->status.to_string();
      EXPECT_THAT(wish->status.message(), HasSubstr(why));
      EXPECT_THAT(wish->status.message(), HasSubstr("rank 2 (host host2, pid 1002)"));
    }
  }

  World world;
  Wish leader, other;
  RawBell bell;
  RawPeer raw;
  Note offer;
  Segment segment;
};

TEST_F(ShmMember, ThatIsHonestGetsTheSegment) {
  ask();
  take_offer();
  prove(offer.proof);
  Note go;
  ASSERT_EQ(raw.receive(go), 0);
  EXPECT_EQ(go.kind, NoteKind::go);
  ASSERT_TRUE(leader.wait().ok());
  leader.segment->memory()[5] = std::byte{5};
  EXPECT_EQ(segment.memory()[front_bytes(3) + 5], std::byte{5});
  ASSERT_TRUE(other.wait().ok());
  leader.segment->bell(2).ring();
  EXPECT_TRUE(bell.has_rung());
}

TEST_F(ShmMember, ThatDiesBeforeItsOfferIsNamed) {
  ask();
  raw.close();
  expect_none(Code::peer_lost, "closed without a goodbye");
}

TEST_F(ShmMember, ThatDiesWithItsOfferIsNamed) {
  ask();
  take_offer();
  raw.close();
  expect_none(Code::peer_lost, "closed without a goodbye");
}

TEST_F(ShmMember, ThatDiesLaterIsReportedToAll) {
  ask();
  take_offer();
  prove(offer.proof);
  Note go;
  ASSERT_EQ(raw.receive(go), 0);
  ASSERT_TRUE(leader.wait().ok() && other.wait().ok());
  raw.close();
  for (Wish* wish : {&leader, &other}) {
    ASSERT_TRUE(wish->until_lost());
    EXPECT_EQ(wish->lost.size(), 1u);
    EXPECT_EQ(wish->lost[0].first, 2);
    EXPECT_EQ(wish->lost[0].second.code(), Code::peer_lost);
    EXPECT_EQ(wish->lost[0].second.peer(), 2);
    EXPECT_THAT(wish->lost[0].second.message(), HasSubstr("rank 2 (host host2, pid 1002): its side of the"));
  }
}

TEST_F(ShmMember, ThatSaysGoodbyeIsNotReported) {
  ask();
  take_offer();
  prove(offer.proof);
  Note note;
  ASSERT_EQ(raw.receive(note), 0);
  ASSERT_TRUE(leader.wait().ok() && other.wait().ok());
  note.kind = NoteKind::goodbye;
  raw.send(note);
  raw.close();
  other.let_go();
  world[0].until([] { return true; });
  EXPECT_TRUE(leader.lost.empty());
}

TEST_F(ShmMember, ThatRefusesSpoilsItForAllWithItsReason) {
  ask();
  take_offer();
  Note note;
  note.why.set(Status(Code::resource_exhausted, "no address space"));
  raw.send(note);
  expect_none(Code::resource_exhausted, "no address space");
}

TEST_F(ShmMember, ThatHasMappedSomethingElseIsFoundOut) {
  ask();
  take_offer();
  prove(offer.proof + 1);
  expect_none(Code::unsupported, "other memory");
}

TEST_F(ShmMember, ThatSpeaksOutOfTurnIsRefused) {
  ask();
  Note note;
  note.kind = NoteKind::go;
  raw.send(note);
  expect_none(Code::protocol_error, "broke the protocol");
}

TEST_F(ShmMember, WithTwoBellsIsRefusedAndNothingLeaks) {
  const int before = open_descriptors();
  raw.send(share_note(world, 2, 3), {bell.get(), bell.get()});
  expect_none(Code::mismatch, "broke the protocol");
  EXPECT_LE(open_descriptors(), before);  // the connection of rank 1 is also closed
}

TEST_F(ShmMember, WithOtherMembersInMindIsRefused) {
  raw.send(share_note(world, 2, 4), {bell.get()});
  expect_none(Code::mismatch, "names other members");
}

// Rank 0 is honest. Rank 1, the leader, is the test.
class ShmLeader : public ::testing::Test {
 protected:
  ShmLeader()
      : name("tutti-test-" + std::to_string(getpid()) + "-" + std::to_string(++count)),
        listener(listen_local(name).take()),
        world(1, raw_address(name)),
        wish(world[0], {1, 0}, key, bytes) {}

  std::unique_ptr<RawPeer> accept() {
    pollfd readable{listener.get(), POLLIN, 0};
    EXPECT_EQ(poll(&readable, 1, 30'000), 1);
    int error = 0;
    auto raw = std::make_unique<RawPeer>(accept_local(listener.get(), error));
    Note hello;
    EXPECT_EQ(raw->receive(hello), 0);
    EXPECT_EQ(hello.kind, NoteKind::share);
    EXPECT_EQ(raw->descriptors.size(), 1u);
    return raw;
  }
  static void offer(RawPeer& raw, int memfd, int bells = 2) {
    const Descriptor memory(memfd);
    const RawBell bell;
    std::vector<int> descriptors(1 + static_cast<std::size_t>(bells), bell.get());
    descriptors[0] = memfd;
    Note note;
    note.kind = NoteKind::offer;
    note.proof = 99;
    raw.send(note, descriptors);
  }
  // Checks that rank 0 refuses the offer and gives its reason.
  void expect_refusal(RawPeer& raw, Code code, const std::string& why) {
    EXPECT_EQ(wish.wait().code(), code) << wish.status.to_string();
    EXPECT_THAT(wish.status.message(), HasSubstr(why));
    Note note;
    ASSERT_EQ(raw.receive(note), 0);
    EXPECT_EQ(note.kind, NoteKind::refused);
    EXPECT_THAT(note.why.failure(0).message(), HasSubstr(why));
    EXPECT_TRUE(raw.is_closed());
  }
  std::size_t whole() const { return segment_bytes(wish); }

  static inline int count = 0;
  std::string name;
  Descriptor listener;
  World world;
  Wish wish;
};

TEST_F(ShmLeader, ThatDiesAtAnyStageIsLost) {
  for (int stage = 0; stage < 3; ++stage) {
    Wish again(world[0], {1, 0}, key, bytes);
    again.post();
    auto raw = accept();
    if (stage > 0) offer(*raw, make_memfd(whole()));
    Note note;
    if (stage > 1) {
      EXPECT_EQ(raw->receive(note), 0);
    }
    raw->close();
    EXPECT_EQ(again.wait().code(), Code::peer_lost) << again.status.to_string();
    EXPECT_THAT(again.status.message(), HasSubstr("rank 1 (host host1, pid 1001)"));
  }
}

TEST_F(ShmLeader, ThatDiesLaterIsReported) {
  wish.post();
  auto raw = accept();
  offer(*raw, make_memfd(whole()));
  Note note;
  ASSERT_EQ(raw->receive(note), 0);
  EXPECT_EQ(note.kind, NoteKind::mapped);
  EXPECT_EQ(wish.completions, 0);
  note.kind = NoteKind::go;
  raw->send(note);
  ASSERT_TRUE(wish.wait().ok());
  raw->close();
  ASSERT_TRUE(wish.until_lost());
  EXPECT_EQ(wish.lost[0].first, 0);
  EXPECT_EQ(wish.lost[0].second.peer(), 1);
}

TEST_F(ShmLeader, ReportsTheDeathOfNobody) {
  wish.post();
  auto raw = accept();
  offer(*raw, make_memfd(whole()));
  Note note;
  ASSERT_EQ(raw->receive(note), 0);
  note.kind = NoteKind::go;
  raw->send(note);
  ASSERT_TRUE(wish.wait().ok());
  note.kind = NoteKind::lost;
  note.member = 1'000'000;
  raw->send(note);
  ASSERT_TRUE(wish.until_lost());
  EXPECT_EQ(wish.lost[0].first, 0);
  EXPECT_THAT(wish.lost[0].second.message(), HasSubstr("broke the protocol"));
}

TEST_F(ShmLeader, LiesAboutSizeOrSeals) {
  struct Lie {
    std::size_t size;
    bool sealed;
    const char* why;
  };
  for (const Lie& lie : {Lie{whole() - 4096, true, "bytes instead of"},
                         Lie{whole() + 4096, true, "bytes instead of"}, Lie{whole(), false, "not sealed"}}) {
    Wish again(world[0], {1, 0}, key, bytes);
    again.post();
    auto raw = accept();
    offer(*raw, make_memfd(lie.size, lie.sealed));
    EXPECT_EQ(again.wait().code(), Code::protocol_error) << again.status.to_string();
    EXPECT_THAT(again.status.message(), HasSubstr(lie.why));
    Note note;
    EXPECT_EQ(raw->receive(note), 0);
    EXPECT_EQ(note.kind, NoteKind::refused);
  }
}

// Memory that consists of huge pages may have holes. An access to a hole raises SIGBUS if no huge page is
// left.
TEST_F(ShmLeader, OffersHugePages) {
  constexpr std::size_t huge = std::size_t{2} << 20;
  wish.bytes = huge - front_bytes(2);
  const int memfd = make_memfd(huge, true, MFD_HUGETLB | 21u << 26);  // MFD_HUGE_2MB
  if (memfd < 0) GTEST_SKIP() << "this kernel has no huge pages";
  wish.post();
  auto raw = accept();
  offer(*raw, memfd);
  expect_refusal(*raw, Code::protocol_error, "not ordinary memory");
}

TEST_F(ShmLeader, OffersWhatIsNoMemory) {
  wish.post();
  auto raw = accept();
  offer(*raw, eventfd(0, EFD_CLOEXEC));
  expect_refusal(*raw, Code::protocol_error, "not sealed");
}

TEST_F(ShmLeader, OffersTooFewBells) {
  const int before = open_descriptors();
  wish.post();
  auto raw = accept();
  offer(*raw, make_memfd(whole()), 1);
  expect_refusal(*raw, Code::protocol_error, "2 descriptors");
  raw.reset();
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(ShmLeader, OffersMoreThanCanBeMapped) {
  wish.bytes = std::uint64_t{1} << 47;
  wish.post();
  auto raw = accept();
  offer(*raw, make_memfd(whole()));
  expect_refusal(*raw, Code::resource_exhausted, "mapping");
}

TEST_F(ShmLeader, SaysGoBeforeItHasOffered) {
  wish.post();
  auto raw = accept();
  Note note;
  note.kind = NoteKind::go;
  raw->send(note);
  EXPECT_EQ(wish.wait().code(), Code::protocol_error) << wish.status.to_string();
}

TEST_F(ShmLeader, ThatIsSilentIsGivenUp) {
  wish.deadline = Deadline::after(std::chrono::milliseconds(50));
  wish.post();
  auto raw = accept();
  EXPECT_EQ(wish.wait().code(), Code::timeout) << wish.status.to_string();
}

// --- strangers ---

class ShmStranger : public ::testing::Test {
 protected:
  World world{2, {}, Options{.handshake_timeout = std::chrono::hours(1)}};
  std::string address = world.peers[0].addresses["shm"];

  void expect_service() {
    Wish leader(world[0], {0, 1}, key, bytes), member(world[1], {0, 1}, key, bytes);
    leader.post();
    member.post();
    EXPECT_TRUE(leader.wait().ok()) << leader.status.to_string();
    EXPECT_TRUE(member.wait().ok()) << member.status.to_string();
  }
};

TEST_F(ShmStranger, WithoutTheNonceIsClosed) {
  for (const bool from : {true, false}) {
    RawPeer raw(address);
    Note note = share_note(world, 1, 2);
    (from ? note.from_nonce : note.to_nonce) ^= 1;
    raw.send(note);
    EXPECT_TRUE(raw.is_closed());
  }
  RawPeer raw(address);
  Note note = share_note(world, 1, 2);
  note.from = 9;
  raw.send(note);
  EXPECT_TRUE(raw.is_closed());
  expect_service();
}

TEST_F(ShmStranger, WhoTalksNonsenseIsClosed) {
  for (const std::size_t size : {std::size_t{1}, sizeof(Note) - 1, sizeof(Note), std::size_t{100'000}}) {
    RawPeer raw(address);
    const std::vector<std::byte> nonsense(size, std::byte{0x55});
    ASSERT_EQ(send(raw.descriptor(), nonsense.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    EXPECT_TRUE(raw.is_closed());
  }
  expect_service();
}

TEST_F(ShmStranger, WhoSaysNothingIsClosed) {
  World impatient{2, {}, Options{.handshake_timeout = std::chrono::milliseconds(100)}};
  RawPeer raw(impatient.peers[0].addresses["shm"]);
  EXPECT_TRUE(raw.is_closed());
}

TEST_F(ShmStranger, AFloodIsBounded) {
  std::vector<std::unique_ptr<RawPeer>> flood;
  for (std::size_t i = 0; i < 2 * meeting::ListenerOptions{}.most_strangers; ++i) {
    flood.push_back(std::make_unique<RawPeer>(address));
  }
  expect_service();
}

TEST_F(ShmStranger, WishesThatNobodyShares) {
  // A hundred connections ask for segments for which no other rank asks. Rank 0 keeps only some of
  // these connections, and closes the rest. It keeps none of them after the test has closed its ends.
  const RawBell bell;
  const int before = open_descriptors();
  {
    std::vector<std::unique_ptr<RawPeer>> raws;
    for (std::uint64_t i = 0; i < 100; ++i) {
      raws.push_back(std::make_unique<RawPeer>(address));
      Note note = share_note(world, 1, 2);
      note.key = 1000 + i;
      raws.back()->send(note, {bell.get()});
    }
    const auto closed = [&] {
      return std::count_if(raws.begin(), raws.end(), [](const auto& raw) {
        pollfd readable{raw->descriptor(), POLLIN, 0};
        return poll(&readable, 1, 0) == 1;
      });
    };
    EXPECT_TRUE(world[0].until([&] { return closed() >= 100 - 64; }));
    EXPECT_EQ(closed(), 100 - 64);
  }
  EXPECT_TRUE(world[0].until([&] { return open_descriptors() <= before; }));
  expect_service();
}

}  // namespace
}  // namespace tutti::shm
