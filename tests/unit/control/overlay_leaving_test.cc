// Tests how the control plane judges a process that ends while ranks leave. The test plays the
// other ranks.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/liveness/overlay.h"
#include "tests/unit/control/lone_overlay.h"

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

// The fixture runs rank 0 of eight ranks. Its neighbours are ranks 1, 2, 4, 6 and 7. One of
// ranks 1 to 7 (`rank_of_child`) is a separate process.
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
    options.connect = connect_to_test(attempts_);
    rank_ = std::make_unique<LoneOverlay>(std::move(options), events_);
    rank_->turn();
  }
  // Sends `bytes` to rank 0 in the name of the rank `from`.
  void say_as(int from, const std::string& bytes) {
    const auto latest = std::ranges::find(attempts_.rbegin(), attempts_.rend(), 4000 + from,
                                          [](const Attempt& attempt) { return attempt.address.port(); });
    ASSERT_NE(latest, attempts_.rend());
    say(latest->end, bytes);
    rank_->turn();
  }
  void link(int rank) {
    rank_->turn();
    say_as(rank, encode(Answer{}));
  }
  // Ends the child, and lets rank 0 notice its end.
  void end_child() {
    child_.end();
    for (int i = 0; i < 4; ++i) rank_->turn(milliseconds(60));
  }

  Child child_;
  Recorder events_;
  std::vector<Attempt> attempts_;
  std::unique_ptr<LoneOverlay> rank_;
};

const std::string goodbye_of_rank_one = encode(Frame{.kind = FrameKind::left, .origin = 1, .target = 1});

// Rank 3 becomes a neighbour when rank 1 leaves. Rank 3 also leaves, before rank 0 has connected to
// it.
TEST_F(OverlayLeaving, ANewNeighbourWhoseProcessEndsHasLeftToo) {
  start(3);
  for (const int rank : {1, 2, 4, 6, 7}) link(rank);
  say_as(1, goodbye_of_rank_one);
  ASSERT_THAT(events_.left, ElementsAre(1));
  end_child();
  EXPECT_THAT(events_.lost, IsEmpty());
  say_as(2, encode(Frame{.kind = FrameKind::left, .origin = 3, .target = 3}));
  EXPECT_THAT(events_.left, ElementsAre(1, 3));
}

TEST_F(OverlayLeaving, ALinkedNeighbourWhoseProcessEndsIsLost) {
  start(2);
  for (const int rank : {1, 2, 4, 6, 7}) link(rank);
  say_as(1, goodbye_of_rank_one);
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
