// Tests local sockets against processes of another user, and against a rank that reports the loss of a living
// rank.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/another_user.h"
#include "tests/unit/transport/shm_world.h"
#include "transport/shm/segment.h"
#include "transport/shm/shared_memory.h"

namespace tutti::shm {
namespace {

using test::as_another_user;
using test::become_another_user;

// A process of another user knows the nonces of both ranks, and sends the notes that rank 1 would
// send.
TEST(ShmOtherUsers, AreNotListenedTo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  World world(2);
  const std::string name = parse_address(world.peers[0].addresses["shm"])->name;
  const Note hello = connect_note(world, 1, 0, 4096);
  const int said = as_another_user([&] {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::ranges::copy(name, address.sun_path + 1);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int end = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(end, reinterpret_cast<sockaddr*>(&address), length) != 0) return 98;
    static_cast<void>(send_note(end, hello, {}));  // fails if the connection is already closed
    char answer[sizeof(Note)];
    pollfd readable{end, POLLIN, 0};
    if (poll(&readable, 1, 30'000) != 1) return 97;
    return recv(end, answer, sizeof answer, 0) > 0 ? 1 : 0;
  });
  EXPECT_EQ(said, 0) << "a process of another user got an answer, or could not connect";
}

// Any process can take the name of a socket, for example after a rank has died.
TEST(ShmOtherUsers, AreNotTrustedWithTheNameOfARank) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  const std::string name = "tutti-test-" + std::to_string(getpid());
  int ready[2], done[2];
  ASSERT_TRUE(pipe(ready) == 0 && pipe(done) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(done[1]);
    if (!become_another_user()) _exit(1);
    const auto listener = listen_local(name);
    char end = listener.ok() ? 'y' : 'n';
    if (write(ready[1], &end, 1) == 1) static_cast<void>(read(done[0], &end, 1));
    _exit(0);
  }
  char listens = 'n';
  EXPECT_EQ(read(ready[0], &listens, 1), 1);
  EXPECT_EQ(listens, 'y');
  int error = 0;
  EXPECT_FALSE(connect_local(name, error));
  EXPECT_EQ(error, EACCES);
  for (const int end : {ready[0], ready[1], done[0], done[1]}) close(end);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

// Only the leader of a segment may report that another rank is lost. Rank 2 is the test.
TEST(ShmLiar, ThatSaysThatAnotherMemberIsLostIsLostItself) {
  World world(2, format(Address{"unused", geteuid(), 17}));
  Wish leader(world[0], ranks(3), key, bytes), other(world[1], ranks(3), key, bytes);
  leader.post();
  other.post();
  RawPeer raw(world.peers[0].addresses["shm"]);
  const RawBell bell;
  raw.send(share_note(world, 2, 3), {bell.get()});
  Note note;
  ASSERT_EQ(raw.receive(note), 0);
  ASSERT_EQ(raw.descriptors.size(), 4u);
  Segment segment;
  ASSERT_TRUE(segment.map(std::move(raw.descriptors[0]), segment_bytes(leader)).ok());
  *proof_place(segment, 2) = note.proof;
  note.kind = NoteKind::mapped;
  raw.send(note);
  ASSERT_TRUE(leader.wait().ok() && other.wait().ok());
  note.kind = NoteKind::lost;
  note.member = 1;
  raw.send(note);
  for (Wish* wish : {&leader, &other}) {
    ASSERT_TRUE(wish->until_lost());
    EXPECT_EQ(wish->lost[0].first, 2);
    EXPECT_THAT(wish->lost[0].second.message(), testing::HasSubstr("broke the protocol"));
  }
}

}  // namespace
}  // namespace tutti::shm
