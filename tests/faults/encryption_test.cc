// Tests that encrypted packets contain no readable data, and that only ranks of the job can take part.
#include <algorithm>
#include <atomic>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <linux/if_ether.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/faults/job.h"
#include "tests/faults/own_network.h"
#include "tests/support/certificates.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* token = "4d7c1f0a93b25e68";
const std::string pattern = "a known pattern.";  // the ranks send it many times over

// `Capture` captures packets on all interfaces of this thread's network namespace.
class Capture {
 public:
  Capture() : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL))) {
    const int size = 64 << 20;
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    thread_ = std::thread([this] { listen(); });
  }
  ~Capture() {
    stop();
    close(socket_);
  }
  bool works() const { return socket_ >= 0; }
  void stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Returns the number of packets that contain the text.
  int count(const std::string& text) const {
    return static_cast<int>(std::ranges::count_if(
        packets_, [&](const std::string& packet) { return packet.find(text) != packet.npos; }));
  }
  std::size_t packets() const { return packets_.size(); }

 private:
  void listen() {
    std::string packet(70'000, '\0');
    while (!over_) {
      pollfd readable{socket_, POLLIN, 0};
      poll(&readable, 1, 10);
      for (ssize_t got = 1; got > 0;) {
        got = recv(socket_, packet.data(), packet.size(), 0);
        if (got > 0 && packets_.size() < 20'000)
          packets_.push_back(packet.substr(0, static_cast<std::size_t>(got)));
      }
    }
  }

  const int socket_;
  std::atomic<bool> over_ = false;
  std::vector<std::string> packets_;
  std::thread thread_;
};

struct Found {
  std::string problem;
  int patterns = 0, keys = 0;
  std::size_t packets = 0;
};

// Captures the packets of a job of three ranks while they meet and work.
Found capture(const Process::Environment& environment) {
  Found found;
  std::thread([&] {
    found.problem = enter_own_network();
    if (!found.problem.empty()) return;
    Capture wire;
    if (!wire.works()) {
      found.problem = "packets cannot be captured here";
      return;
    }
    Job job(3, environment, 0);
    job.text = pattern;
    for (int rank = 0; rank < 3; ++rank) job.start(rank);
    EXPECT_TRUE(job.are_ready()) << job[0].report() << job[1].report() << job[2].report();
    job.expect_good_end();
    wire.stop();
    found.patterns = wire.count(pattern);
    found.keys = wire.count("rank/1");  // a key of the store
    found.packets = wire.packets();
  }).join();
  std::printf("%zu packets, %d with the pattern, %d with a key of the store\n", found.packets, found.patterns,
              found.keys);
  return found;
}

TEST(Encryption, TheWireHoldsNoPlaintextOnlyWithTls) {
  const Found control = capture({{"TUTTI_TOKEN", token}});
  if (!control.problem.empty()) GTEST_SKIP() << control.problem;
  EXPECT_GT(control.patterns, 10);
  EXPECT_GT(control.keys, 0);
  const Found encrypted = capture({{"TUTTI_TOKEN", token}, {"TUTTI_TLS", "1"}, {"TUTTI_TCP_SOCKETS", "3"}});
  EXPECT_GT(encrypted.packets, 50u);
  EXPECT_EQ(encrypted.patterns, 0);
  EXPECT_EQ(encrypted.keys, 0);
}

TEST(Encryption, CertificatesDoWithoutAToken) {
  const ScratchFolder folder;
  const bool made = make_authority(folder.path(), "ca") && make_authority(folder.path(), "other") &&
                    make_certificate(folder.path(), "ca", "rank0") &&
                    make_certificate(folder.path(), "ca", "rank1") &&
                    make_certificate(folder.path(), "other", "stranger");
  if (!made) GTEST_SKIP() << "the openssl command makes no certificates here";
  const auto holder = [&](const std::string& name) {
    return Process::Environment{{"TUTTI_TLS", "1"},
                                {"TUTTI_TLS_CA", folder / "ca.pem"},
                                {"TUTTI_TLS_CERT", folder / (name + ".pem")},
                                {"TUTTI_TLS_KEY", folder / (name + ".key")}};
  };
  Job job(2, {{"TUTTI_TRANSPORTS", "shm,tcp"}}, 0);
  job.start(0, holder("rank0"));
  Process& stranger = job.start(1, holder("stranger"));
  EXPECT_EQ(stranger.wait(), 1) << stranger.report();
  EXPECT_THAT(stranger.err(), HasSubstr("unauthenticated"));
  job.ranks.pop_back();
  job.start(1, holder("rank1"));
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

TEST(Encryption, OneRankWithoutItIsToldOnBothSides) {
  for (const bool first : {false, true}) {
    Job job(2, {{"TUTTI_TOKEN", token}, {"TUTTI_INIT_TIMEOUT", "15s"}}, 0);
    job.start(0, {{"TUTTI_TLS", first ? "1" : "0"}});
    job.start(1, {{"TUTTI_TLS", first ? "0" : "1"}});
    for (const auto& rank : job.ranks) {
      EXPECT_EQ(rank->wait(), 1) << rank->report();
      EXPECT_THAT(rank->err(), AllOf(HasSubstr("does not encrypt"), HasSubstr("TUTTI_TLS")))
          << rank->report();
    }
    EXPECT_THAT(job[1].err(), HasSubstr("unauthenticated"));
  }
}

TEST(Encryption, NeedsAToken) {
  Job job(2, {{"TUTTI_TLS", "1"}}, 1);
  EXPECT_EQ(job[0].wait(), 1) << job[0].report();
  EXPECT_THAT(job[0].err(), AllOf(HasSubstr("TUTTI_TLS needs"), HasSubstr("TUTTI_TOKEN")));
}

TEST(Encryption, TheLauncherAndFileSessionsHaveATokenForIt) {
  const ScratchFolder folder;
  const std::string program = std::string(TUTTI_BIN_DIR) + "/tests/busy_rank";
  Process launcher({std::string(TUTTI_BIN_DIR) + "/tutti", "run", "-n", "2", "--", program, folder / "stop"},
                   {{"TUTTI_TRANSPORTS", "tcp"}, {"TUTTI_TLS", "1"}});
  EXPECT_TRUE(launcher.wait_for_output("ready")) << launcher.report();
  std::ofstream(folder / "stop") << "now";
  EXPECT_EQ(launcher.wait(), 0) << launcher.report();
  Job job(2, {{"TUTTI_INIT_METHOD", "file://" + (folder / "session")}, {"TUTTI_TLS", "1"}});
  ASSERT_TRUE(job.are_ready()) << job[0].report() << job[1].report();
  job.expect_good_end();
}

}  // namespace
}  // namespace tutti::test
