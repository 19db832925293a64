// Tests which processes the control plane's port takes for ranks. The test plays the processes that connect.
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
#include "transport/meeting/socket.h"

namespace tutti::liveness {
namespace {

class NoEvents final : public ControlEvents {
 public:
  void on_lost(int rank, const Status& why) override { ADD_FAILURE() << rank << ": " << why.to_string(); }
  void on_left(int rank) override { ADD_FAILURE() << rank; }
  void on_fenced(const Status& why) override { ADD_FAILURE() << why.to_string(); }
  void on_note(const ControlNote& note) override { ADD_FAILURE() << "a note of rank " << note.origin; }
};

// Rank 1 of three ranks, with the nonces 10, 11 and 12. It waits for rank 0, and connects to rank 2.
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
    options.connect = [this](const SocketAddress&, security::Guard guard) {
      int both[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
      rank_two_ = Descriptor(both[1]);
      return std::make_unique<Stream>(Descriptor(both[0]), std::move(guard));
    };
    auto listener = meeting::listen_on("control", "127.0.0.1", 0, 0).take();
    port_ = port_of(listener);
    overlay_ = std::make_unique<Overlay>(std::move(options), std::move(listener), events_);
    overlay_->start(now_);
    for (int i = 0; i < 3; ++i) turn();
  }

  void turn() {
    std::vector<pollfd> waits;
    overlay_->collect(waits);
    poll(waits.data(), waits.size(), 0);
    overlay_->run(waits, now_);
  }
  static std::string hear(const Descriptor& end) {
    std::string bytes(65536, '\0');
    const ssize_t got = recv(end.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
  // Returns a valid hello of rank 0 to rank 1. It takes the job's number from the hello that rank 1 has sent
  // to rank 2.
  Hello good() const {
    const auto own = decode_hello(hear(rank_two_));
    return {.to = 1, .job = own.value_or(Hello{}).job, .from_nonce = 10, .to_nonce = 11};
  }
  // Says this on the connection that was made last, and waits until it has arrived.
  void say(const std::string& text) {
    const int end = ends_.back().get();
    std::size_t said = 0;
    for (int under_way = 1; said < text.size() || under_way > 0; turn()) {
      const ssize_t sent = send(end, text.data() + said, text.size() - said, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) said += static_cast<std::size_t>(sent);
      ASSERT_EQ(ioctl(end, SIOCOUTQ, &under_way), 0);
    }
    for (int i = 0; i < 10; ++i) turn();
  }
  // Connects and says this hello. If `accuses`, then says that rank 2 is lost. Returns the answer to the
  // hello, or nothing if the connection was closed without one.
  std::optional<Answer> answer_to(const Hello& hello, bool accuses) {
    Descriptor end(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress address = *tutti::parse_address("127.0.0.1", port_);
    EXPECT_EQ(connect(end.get(), address.raw(), address.length), 0);
    std::string text = encode(hello);
    if (accuses) text += encode(Frame{.kind = FrameKind::lost, .code = Code::peer_lost, .target = 2});
    EXPECT_EQ(send(end.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    pollfd answered{end.get(), POLLIN, 0};
    for (int i = 0; i < 10'000 && poll(&answered, 1, 1) == 0; ++i) turn();
    const std::string answer = hear(end);
    for (int i = 0; i < 3; ++i) turn();
    ends_.push_back(std::move(end));
    return decode_answer(answer);
  }

  NoEvents events_;
  Clock::time_point now_ = Clock::now();
  Descriptor rank_two_;
  std::vector<Descriptor> ends_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Overlay> overlay_;
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

// A member may write any number in place of a rank.
TEST_F(OverlayHello, FramesThatNameNoRankAreIgnored) {
  ASSERT_TRUE(answer_to(good(), false));
  for (const std::uint32_t nobody : {3u, 1u << 30, ~0u}) {
    for (const FrameKind kind : {FrameKind::lost, FrameKind::left, FrameKind::publish, FrameKind::send})
      say(encode(Frame{.kind = kind, .hops = 9, .code = Code::peer_lost, .origin = nobody, .target = 2}));
    for (const FrameKind kind : {FrameKind::lost, FrameKind::left, FrameKind::send})
      say(encode(Frame{.kind = kind, .hops = 9, .code = Code::peer_lost, .target = nobody}));
  }
  EXPECT_EQ(hear(rank_two_), "");
}

// Rank 0 sends many notes to rank 2, which does not read.
TEST_F(OverlayHello, NotesForARankThatDoesNotReadAreDropped) {
  ASSERT_TRUE(answer_to(good(), false));
  const std::string answer = encode(Answer{});
  ASSERT_EQ(send(rank_two_.get(), answer.data(), answer.size(), MSG_NOSIGNAL), 16);
  turn();
  const std::string body(max_control_body, 'x');
  for (int i = 0; i < 50; ++i)
    say(encode(Frame{.kind = FrameKind::send, .hops = 9, .target = 2, .body = body}));
  std::size_t kept = 0;
  for (std::string heard = hear(rank_two_); !heard.empty(); heard = hear(rank_two_)) {
    kept += heard.size();
    turn();
  }
  EXPECT_GT(kept, body.size());
  EXPECT_LT(kept, 3u << 20);
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// A process that is turned away may keep its end open. The clock of rank 1 stands still, so no time limit of
// rank 1 closes these connections.
TEST_F(OverlayHello, ThatIsRefusedKeepsFewDescriptorsOpen) {
  Hello hello = good();
  hello.to_nonce ^= 1;
  const std::ptrdiff_t before = open_descriptors();
  for (int i = 0; i < 200; ++i) static_cast<void>(answer_to(hello, false));
  EXPECT_LE(open_descriptors() - before, 200 + 64);
}

}  // namespace
}  // namespace tutti::liveness
