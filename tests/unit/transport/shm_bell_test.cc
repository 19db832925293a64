// Tests ranks whose peer sends a descriptor that is not a bell, or a bell that cannot be rung. (A bell is
// the socket that wakes a sleeping rank.)
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "tests/unit/transport/shm_world.h"
#include "transport/shm/pipe.h"
#include "transport/shm/shared_memory.h"

namespace tutti::shm {
namespace {

using conformance::collective;
using conformance::Recv;
using conformance::Send;
using ::testing::HasSubstr;

// Returns the writing end of a full pipe. A write to the pipe blocks if there is a reader, and fails if
// there is none.
int full_pipe(bool has_reader) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  while (write(ends[1], "x", 1) == 1) {
  }
  fcntl(ends[1], F_SETFL, 0);
  const int kept = has_reader ? fcntl(ends[0], F_DUPFD_CLOEXEC, 0) : -1;
  close(ends[0]);
  static std::vector<Descriptor> readers;
  if (kept >= 0) readers.emplace_back(kept);
  return ends[1];
}

int eventfd_that_waits(int flags) {
  const int made = eventfd(0, EFD_CLOEXEC | flags);
  const std::uint64_t most = UINT64_MAX - 1;
  EXPECT_EQ(write(made, &most, sizeof most), static_cast<ssize_t>(sizeof most));
  return made;
}

struct NoBell {
  const char* name;
  int (*make)();
};
void PrintTo(const NoBell& which, std::ostream* out) { *out << which.name; }

const NoBell no_bells[] = {
    {"FullPipe", [] { return full_pipe(true); }},
    {"PipeWithoutReader", [] { return full_pipe(false); }},
    {"WaitingEventfd", [] { return eventfd_that_waits(0); }},
    {"Eventfd", [] { return eventfd_that_waits(EFD_NONBLOCK); }},
    {"StreamSocket", [] { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }},
    {"UdpSocket", [] { return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); }},
    {"File", [] { return open("/proc/self/exe", O_RDONLY | O_CLOEXEC); }},
    {"Memory", [] { return make_memfd(4096); }},
};

class ShmNoBell : public ::testing::TestWithParam<NoBell> {
 protected:
  std::string name = "tutti-test-bell-" + std::to_string(getpid());
  Descriptor listener = listen_local(name).take();
  World world{1, format(Address{name, geteuid(), 99})};
  Descriptor no_bell{GetParam().make()};

  RawPeer accept(NoteKind kind) {
    pollfd readable{listener.get(), POLLIN, 0};
    EXPECT_EQ(poll(&readable, 1, 30'000), 1);
    int error = 0;
    RawPeer raw(accept_local(listener.get(), error));
    Note hello;
    EXPECT_EQ(raw.receive(hello), 0);
    EXPECT_EQ(hello.kind, kind);
    return raw;
  }
  void expect_refusal(RawPeer& raw) {
    Note note;
    ASSERT_EQ(raw.receive(note), 0);
    EXPECT_EQ(note.kind, NoteKind::refused);
    EXPECT_THAT(note.why.failure(0).message(), HasSubstr("a descriptor that is not a bell"));
  }
};

TEST_P(ShmNoBell, IsNotTakenFromAMember) {
  Wish wish(world[0], {0, 1}, key, bytes);
  wish.post();
  RawPeer raw(world.peers[0].addresses["shm"]);
  raw.send(share_note(world, 1, 2), {no_bell.get()});
  EXPECT_FALSE(wish.wait().ok());
  EXPECT_EQ(wish.status.peer(), 1);
  expect_refusal(raw);
}

TEST_P(ShmNoBell, IsNotTakenFromALeader) {
  Wish wish(world[0], {1, 0}, key, bytes);
  wish.post();
  RawPeer raw = accept(NoteKind::share);
  const Descriptor memory(make_memfd(segment_bytes(wish)));
  const RawBell bell;
  Note note;
  note.kind = NoteKind::offer;
  raw.send(note, {memory.get(), no_bell.get(), bell.get()});
  EXPECT_EQ(wish.wait().code(), Code::protocol_error);
  EXPECT_EQ(wish.status.peer(), 1);
  expect_refusal(raw);
}

TEST_P(ShmNoBell, IsNotTakenWithAPipe) {
  constexpr std::size_t ring = 4096;
  RawPeer raw(world.peers[0].addresses["shm"]);
  const auto pipe = Pipe::create(ring, proof).take();
  raw.send(connect_note(world, 1, 0, ring), {pipe->descriptor(), no_bell.get()});
  expect_refusal(raw);
}

TEST_P(ShmNoBell, IsNotTakenFromWhoWelcomes) {
  Recv recv(8, 1, collective(1));
  world[0].post(recv);
  RawPeer raw = accept(NoteKind::connect);
  Note note;
  note.kind = NoteKind::welcome;
  raw.send(note, {no_bell.get()});
  expect_refusal(raw);
  EXPECT_FALSE(recv.wait().ok());
}

INSTANTIATE_TEST_SUITE_P(All, ShmNoBell, ::testing::ValuesIn(no_bells),
                         [](const auto& test) { return std::string(test.param.name); });

// Ranks 0 and 1 share a segment with the test, which plays rank 2 and leads the segment. The test
// keeps the true bells, and gives every rank the same false bell in their place.
class ShmFalseBells : public ::testing::Test {
 protected:
  ShmFalseBells() {
    for (Wish* wish : {&first, &second}) wish->post();
    const Descriptor memory(make_memfd(segment_bytes(first)));
    for (int i = 0; i < 2; ++i) links.push_back(offer_to_next(memory));
    Note note;
    for (RawPeer& link : links) EXPECT_EQ(link.receive(note), 0);
    note.kind = NoteKind::go;
    for (RawPeer& link : links) link.send(note);
    EXPECT_TRUE(first.wait().ok() && second.wait().ok());
  }
  RawPeer offer_to_next(const Descriptor& memory) {
    pollfd readable{listener.get(), POLLIN, 0};
    EXPECT_EQ(poll(&readable, 1, 30'000), 1);
    int error = 0;
    RawPeer raw(accept_local(listener.get(), error));
    Note note;
    EXPECT_EQ(raw.receive(note), 0);
    true_bells.push_back(std::move(raw.descriptors.front()));
    note = {};
    note.kind = NoteKind::offer;
    raw.send(note, {memory.get(), false_bell.get(), false_bell.get(), false_bell.get()});
    return raw;
  }
  // Returns how often the false bell has been rung since the last call. Rings the true bells for
  // each such ring, so that no thread sleeps forever.
  int stolen_rings() {
    int count = 0;
    for (; !false_bell.is_silent(); ++count) {
      for (const Descriptor& bell : true_bells) send(bell.get(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    return count;
  }

  const std::string name = "tutti-test-false-bell-" + std::to_string(getpid());
  const Descriptor listener = listen_local(name).take();
  World world{2, format(Address{name, geteuid(), 99})};
  Wish first{world[0], {2, 0, 1}, key, bytes};
  Wish second{world[1], {2, 0, 1}, key, bytes};
  RawBell false_bell;
  std::vector<Descriptor> true_bells;
  std::vector<RawPeer> links;
};

bool is_asleep(pid_t thread) {
  std::string text;
  std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread) + "/stat"), text);
  return text.find(") S ") != std::string::npos;
}

TEST_F(ShmFalseBells, OfALeaderDoNotStopOthersMessages) {
  constexpr std::uint64_t rounds = 10;
  std::atomic<pid_t> receiver = 0;
  std::atomic<std::uint64_t> received = 0;
  std::thread thread([&] {
    receiver = gettid();
    for (; received < rounds; ++received) {
      Recv message(8, 0, collective(received + 1));
      world[1].post(message);
      EXPECT_TRUE(message.wait().ok());
    }
  });
  int stolen = 0;
  const auto until = [&](const auto& there) {
    for (int i = 0; i < 10'000 && !there(); ++i, usleep(1000)) stolen += stolen_rings();
  };
  for (std::uint64_t round = 0; round < rounds; ++round) {
    until([&] { return received == round && is_asleep(receiver); });
    Send message(8, collective(round + 1), 0);
    world[0].post(1, message);
    EXPECT_TRUE(message.wait().ok());
  }
  until([&] { return received == rounds; });
  thread.join();
  EXPECT_EQ(stolen, 0);
}

// The peer does not read its bell, and an ordinary write to the bell's full socket would block.
TEST(ShmBell, ThatIsFullHoldsNobodyUp) {
  const RawBell bell;
  while (send(bell.get(), "x", 1, MSG_DONTWAIT) == 1) {
  }
  ASSERT_EQ(fcntl(bell.get(), F_SETFL, 0), 0);
  const SharedRope rope = BellRope::from(Descriptor(dup(bell.get())));
  ASSERT_NE(rope, nullptr);
  rope->ring();
}

TEST(ShmBell, WhoseOwnerIsGoneHarmsNobody) {
  SharedRope rope;
  {
    const RawBell bell;
    rope = BellRope::from(Descriptor(dup(bell.get())));
  }
  rope->ring();
}

TEST(ShmBell, IsHeardAndThenSilent) {
  Bell bell;
  ASSERT_TRUE(bell.create().ok());
  for (int i = 0; i < 10; ++i) bell.rope()->ring();
  pollfd readable{bell.descriptor(), POLLIN, 0};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(poll(&readable, 1, 0), 1);
    bell.on_ready(POLLIN);
  }
  EXPECT_EQ(poll(&readable, 1, 0), 0);
  bell.on_ready(POLLIN);  // does not block
}

// A peer's memory may have holes (pages without memory). The system may be unable to fill a hole at
// the time of a write.
TEST(ShmPipe, HolesAreFilledBeforeItIsUsed) {
  constexpr std::size_t ring = 4096;
  const std::size_t whole = page_bytes() + 2 * ring;
  const Descriptor memory(make_memfd(whole));
  struct stat info {};
  ASSERT_EQ(fstat(memory.get(), &info), 0);
  ASSERT_EQ(info.st_blocks, 0);
  ASSERT_TRUE(Pipe::map(Descriptor(dup(memory.get())), ring, proof).ok());
  ASSERT_EQ(fstat(memory.get(), &info), 0);
  EXPECT_GE(static_cast<std::size_t>(info.st_blocks) * 512, whole);
}

}  // namespace
}  // namespace tutti::shm
