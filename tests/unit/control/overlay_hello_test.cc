// Tests which processes the control plane's port accepts as ranks. The test plays the connecting
// processes.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/liveness/overlay.h"
#include "tests/unit/control/lone_overlay.h"

namespace tutti::liveness {
namespace {

class NoEvents final : public ControlEvents {
 public:
  void on_lost(int rank, const Status& why) override { ADD_FAILURE() << rank << ": " << why.to_string(); }
  void on_left(int rank) override { ADD_FAILURE() << rank; }
  void on_fenced(const Status& why) override { ADD_FAILURE() << why.to_string(); }
  void on_note(const ControlNote& note) override { ADD_FAILURE() << "a note of rank " << note.origin; }
};

// The fixture runs rank 1 of three ranks. Their nonces (random numbers) are 10, 11 and 12. Rank 1
// waits for rank 0, and connects to rank 2.
class OverlayHello : public ::testing::Test {
 protected:
  OverlayHello() {
    OverlayOptions options;
    options.rank = 1;
    for (int rank = 0; rank < 3; ++rank) {
      PeerInfo peer;
      peer.rank = rank;
      peer.addresses[address_name] =
          format(Address{"10.0.0.1", 4711, static_cast<std::uint64_t>(10 + rank), {}});
      options.peers.push_back(peer);
    }
    options.nonce = 11;
    options.connect = connect_to_test(attempts_);
    rank_ = std::make_unique<LoneOverlay>(std::move(options), events_);
    for (int i = 0; i < 3; ++i) turn();
  }

  void turn() { rank_->turn(); }
  // Returns the test's end of the connection from rank 1 to rank 2.
  const Descriptor& rank_two() const { return attempts_.back().end; }
  // Returns a valid hello of rank 0 to rank 1. The job's number is taken from the hello that rank 1
  // has sent to rank 2.
  Hello good() const {
    const auto own = decode_hello(hear(rank_two()));
    return {.to = 1, .job = own.value_or(Hello{}).job, .from_nonce = 10, .to_nonce = 11};
  }
  // Sends `text` on the newest connection, and waits until it has arrived.
  void say_slowly(const std::string& text) {
    const int end = ends_.back().get();
    std::size_t said = 0;
    for (int under_way = 1; said < text.size() || under_way > 0; turn()) {
      const ssize_t sent = send(end, text.data() + said, text.size() - said, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) said += static_cast<std::size_t>(sent);
      ASSERT_EQ(ioctl(end, SIOCOUTQ, &under_way), 0);
    }
    for (int i = 0; i < 10; ++i) turn();
  }
  // Connects and sends this hello. If `accuses` is true, also sends a report that rank 2 is lost.
  // Returns the answer to the hello, or nothing if the connection was closed without an answer.
  std::optional<Answer> answer_to(const Hello& hello, bool accuses) {
    Descriptor end(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress address = *tutti::parse_address("127.0.0.1", rank_->port);
    EXPECT_EQ(connect(end.get(), address.raw(), address.length), 0);
    std::string text = encode(hello);
    if (accuses) text += encode(Frame{.kind = FrameKind::lost, .code = Code::peer_lost, .target = 2});
    say(end, text);
    pollfd answered{end.get(), POLLIN, 0};
    for (int i = 0; i < 10'000 && poll(&answered, 1, 1) == 0; ++i) turn();
    const std::string answer = hear(end);
    for (int i = 0; i < 3; ++i) turn();
    ends_.push_back(std::move(end));
    return decode_answer(answer);
  }

  NoEvents events_;
  std::vector<Attempt> attempts_;
  std::vector<Descriptor> ends_;
  std::unique_ptr<LoneOverlay> rank_;
};

TEST_F(OverlayHello, OfAnotherProcessThanTheRankIsRefused) {
  const Hello hello = good();
  const std::vector<std::function<void(Hello&)>> lies = {
      [](Hello& other) { ++other.version; },    [](Hello& other) { other.job ^= 1; },
      [](Hello& other) { other.to = 2; },       [](Hello& other) { other.from = 1, other.from_nonce = 11; },
      [](Hello& other) { other.from = 3; },     [](Hello& other) { other.from = ~0u; },
      [](Hello& other) { other.from = 2; },     [](Hello& other) { other.from_nonce ^= 1; },
      [](Hello& other) { other.to_nonce ^= 1; }};
  for (std::size_t i = 0; i < lies.size(); ++i) {
    Hello other = hello;
    lies[i](other);
    const auto answer = answer_to(other, true);
    ASSERT_TRUE(answer) << i;
    EXPECT_EQ(answer->verdict, Verdict::stranger) << i;
  }
  const auto answer = answer_to(hello, false);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->verdict, Verdict::welcome);
}

// A faulty or hostile rank can send any number where a frame names a rank.
TEST_F(OverlayHello, FramesThatNameNoRankAreIgnored) {
  ASSERT_TRUE(answer_to(good(), false));
  for (const std::uint32_t nobody : {3u, 1u << 30, ~0u}) {
    for (const FrameKind kind : {FrameKind::lost, FrameKind::left, FrameKind::publish, FrameKind::send})
      say_slowly(
          encode(Frame{.kind = kind, .hops = 9, .code = Code::peer_lost, .origin = nobody, .target = 2}));
    for (const FrameKind kind : {FrameKind::lost, FrameKind::left, FrameKind::send})
      say_slowly(encode(Frame{.kind = kind, .hops = 9, .code = Code::peer_lost, .target = nobody}));
  }
  EXPECT_EQ(hear(rank_two()), "");
}

// Rank 0 sends many notes to rank 2, which does not read.
TEST_F(OverlayHello, NotesForARankThatDoesNotReadAreDropped) {
  ASSERT_TRUE(answer_to(good(), false));
  say(rank_two(), encode(Answer{}));
  turn();
  const std::string body(max_control_body, 'x');
  for (int i = 0; i < 50; ++i)
    say_slowly(encode(Frame{.kind = FrameKind::send, .hops = 9, .target = 2, .body = body}));
  std::size_t kept = 0;
  for (std::string heard = hear(rank_two()); !heard.empty(); heard = hear(rank_two())) {
    kept += heard.size();
    turn();
  }
  EXPECT_GT(kept, body.size());
  EXPECT_LT(kept, 3u << 20);
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// A refused process may keep its end open. The clock of rank 1 does not advance, so no time limit
// closes these connections.
TEST_F(OverlayHello, ThatIsRefusedKeepsFewDescriptorsOpen) {
  Hello hello = good();
  hello.to_nonce ^= 1;
  const std::ptrdiff_t before = open_descriptors();
  for (int i = 0; i < 200; ++i) static_cast<void>(answer_to(hello, false));
  EXPECT_LE(open_descriptors() - before, 200 + 64);
}

}  // namespace
}  // namespace tutti::liveness
