// Tests what the control plane makes of a process that ends while ranks leave. The test plays the other
// ranks.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/liveness/overlay.h"
#include "transport/meeting/socket.h"

namespace tutti::liveness {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Recorder final : public ControlEvents {
 public:
  void on_lost(int rank, const Status&) override { lost.push_back(rank); }
  void on_left(int rank) override { left.push_back(rank); }
  void on_fenced(const Status& why) override { ADD_FAILURE() << why.to_string(); }
  void on_note(const ControlNote& note) override { ADD_FAILURE() << "a note of rank " << note.origin; }
  std::vector<int> lost, left;
};

// A `Child` is a process that ends when `end` is called.
class Child {
 public:
  Child() {
    int identity[2], life[2];
    EXPECT_EQ(pipe(identity), 0);
    EXPECT_EQ(pipe(life), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(life[1]);
      const ProcessIdentity own = own_identity();
      char byte = 0;
      const bool told = write(identity[1], &own, sizeof own) == sizeof own;
      _exit(told && read(life[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(identity[1]);
    close(life[0]);
    life_ = Descriptor(life[1]);
    EXPECT_EQ(read(identity[0], &identity_, sizeof identity_), static_cast<ssize_t>(sizeof identity_));
    close(identity[0]);
  }
  ~Child() { end(); }
  void end() {
    if (pid_ <= 0) return;
    life_.reset();
    EXPECT_GT(waitpid(std::exchange(pid_, 0), nullptr, 0), 0);
  }
  pid_t pid() const { return pid_; }
  const ProcessIdentity& identity() const { return identity_; }

 private:
  pid_t pid_ = 0;
  Descriptor life_;
  ProcessIdentity identity_;
};

// Rank 0 of eight ranks. Its neighbours are ranks 1, 2, 4, 6 and 7. One of the other ranks is a process of
// its own.
class OverlayLeaving : public ::testing::Test {
 protected:
  void start(int rank_of_child) {
    OverlayOptions options;
    for (int rank = 0; rank < 8; ++rank) {
      PeerInfo peer;
      peer.rank = rank;
      peer.boot_id = rank == 0 || rank == rank_of_child ? "here" : "elsewhere";
      peer.pid = child_.pid();
      peer.addresses[address_name] =
          format(Address{"10.0.0.1", static_cast<std::uint16_t>(4000 + rank), 1, child_.identity()});
      options.peers.push_back(peer);
    }
    options.nonce = 1;
    options.connect = [this](const SocketAddress& address, security::Guard guard) {
      int both[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
      ends_[address.port() - 4000] = Descriptor(both[1]);
      return std::make_unique<Stream>(Descriptor(both[0]), std::move(guard));
    };
    auto listener = meeting::listen_on("control", "127.0.0.1", 0, 0).take();
    overlay_ = std::make_unique<Overlay>(std::move(options), std::move(listener), events_);
    overlay_->start(now_);
    turn();
  }
  // Makes one turn, at a time that is later by `passed`.
  void turn(milliseconds passed = milliseconds(0)) {
    now_ += passed;
    std::vector<pollfd> waits;
    overlay_->collect(waits);
    poll(waits.data(), waits.size(), 0);
    overlay_->run(waits, now_);
  }
  void say(int rank, const std::string& bytes) {
    EXPECT_EQ(send(ends_.at(rank).get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    turn();
  }
  void link(int rank) {
    turn();
    say(rank, encode(Answer{}));
  }
  // Ends the child, and lets rank 0 notice it.
  void end_child() {
    child_.end();
    for (int i = 0; i < 4; ++i) turn(milliseconds(60));
  }

  Child child_;
  Recorder events_;
  Clock::time_point now_ = Clock::now();
  std::map<int, Descriptor> ends_;  // of the connections that rank 0 has made, by rank
  std::unique_ptr<Overlay> overlay_;
};

const std::string goodbye_of_rank_one = encode(Frame{.kind = FrameKind::left, .origin = 1, .target = 1});

// Rank 3 becomes a neighbour when rank 1 leaves. It leaves, too, before there is a connection with it.
TEST_F(OverlayLeaving, ANewNeighbourWhoseProcessEndsHasLeftToo) {
  start(3);
  for (const int rank : {1, 2, 4, 6, 7}) link(rank);
  say(1, goodbye_of_rank_one);
  ASSERT_THAT(events_.left, ElementsAre(1));
  end_child();
  EXPECT_THAT(events_.lost, IsEmpty());
  say(2, encode(Frame{.kind = FrameKind::left, .origin = 3, .target = 3}));
  EXPECT_THAT(events_.left, ElementsAre(1, 3));
}

TEST_F(OverlayLeaving, ALinkedNeighbourWhoseProcessEndsIsLost) {
  start(2);
  for (const int rank : {1, 2, 4, 6, 7}) link(rank);
  say(1, goodbye_of_rank_one);
  end_child();
  EXPECT_THAT(events_.lost, ElementsAre(2));
}

TEST_F(OverlayLeaving, AFirstNeighbourWhoseProcessEndsIsLost) {
  start(2);
  end_child();
  EXPECT_THAT(events_.lost, ElementsAre(2));
}

}  // namespace
}  // namespace tutti::liveness
