// Tests that processes outside the job do not disturb the job. The tests run at every kind of port
// (`all_kinds_of_port`).
#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tutti/log.h>

#include "tests/conformance/stranger_ports.h"
#include "tests/support/greetings.h"
#include "tests/support/guards.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

// A `Caller` is a connection to a port. It can send anything.
class Caller {
 public:
  explicit Caller(const OpenPort& port, const std::string& from = "127.0.0.1") : socket_(port.socket()) {
    EXPECT_TRUE(port.connect(socket_.get(), from));
  }
  int descriptor() const { return socket_.get(); }
  // Encrypts all later data of the caller if the guard demands encryption. The caller must have passed the
  // guard.
  void speak_as_agreed_by(security::Guard& guard) { stream_.encrypt(guard.take_tls()); }
  void say(const std::string& text) {
    int error = 0;
    static_cast<void>(stream_.write(socket_.get(), std::as_bytes(std::span(text)), error));
  }
  bool hears_anything() const { return waits_for_input(); }
  // Returns whether the other side closes the connection without sending anything.
  bool is_closed_silently() {
    std::array<std::byte, 1> place;
    int error = EAGAIN;
    while (error == EAGAIN) {
      if (!waits_for_input() || stream_.read(socket_.get(), place, error) > 0) return false;
    }
    return error == EPIPE || error == ECONNRESET;
  }
  bool is_open() const {
    char byte;
    return recv(socket_.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

 private:
  bool waits_for_input() const {
    pollfd entry{socket_.get(), POLLIN, 0};
    return poll(&entry, 1, 60'000) == 1;
  }

  Descriptor socket_;
  security::ByteStream stream_;
};

// Returns the first message of a guard. This function gives the guard no connection to the port,
// since the guard might read the port's answer and continue.
std::string opening_of(security::Guard& guard) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Descriptor ours(ends[0]), theirs(ends[1]);
  guard.advance(ours.get());
  std::string opening(security::Guard::message_bytes, '\0');
  EXPECT_EQ(recv(theirs.get(), opening.data(), opening.size(), MSG_WAITALL),
            static_cast<ssize_t>(opening.size()));
  return opening;
}

class PortStrangers : public ::testing::TestWithParam<KindOfPort> {
 protected:
  static std::unique_ptr<OpenPort> open(const std::string& token = {},
                                        milliseconds hello_limit = std::chrono::hours(1)) {
    const bool needs_another = token.empty() && GetParam().needs_token;
    return GetParam().open({.token = needs_another ? "secret" : token, .hello_limit = hello_limit});
  }
  static security::Guard guard_at(const OpenPort& port, const std::string& token) {
    return security::Guard::connecting(port.credentials(token), port.parties(), Deadline::after(minutes(1)));
  }
  // Connects three times as many strangers as the port keeps.
  static std::vector<std::unique_ptr<Caller>> crowd_at(const OpenPort& port) {
    std::vector<std::unique_ptr<Caller>> crowd;
    for (std::size_t i = 0; i < 3 * port.most_strangers(); ++i)
      crowd.push_back(std::make_unique<Caller>(port));
    return crowd;
  }
};

TEST_P(PortStrangers, WhoSpeakAnotherProtocolAreClosedWithoutAWord) {
  const auto port = open();
  std::vector<std::string> greetings = greetings_of_others();
  greetings.insert(greetings.end(), {"G", std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8)});
  for (const std::string& greeting : greetings) {
    Caller stranger(*port);
    stranger.say(greeting);
    EXPECT_TRUE(stranger.is_closed_silently()) << greeting.substr(0, 20);
  }
  port->expect_service();
}

TEST_P(PortStrangers, WhoSayNothingAreClosedInTime) {
  const auto port = open("", std::chrono::seconds(1));
  Caller silent(*port), slow(*port);
  security::Guard guard = guard_at(*port, "secret");
  const std::string hello = GetParam().needs_token ? opening_of(guard) : port->hello(1);
  if (GetParam().hellos_have_parts) slow.say(hello.substr(0, hello.size() - 1));
  EXPECT_TRUE(silent.is_closed_silently());
  EXPECT_TRUE(slow.is_closed_silently());
}

TEST_P(PortStrangers, AreBoundedAndTheOldestGoes) {
  const auto port = open();
  const auto crowd = crowd_at(*port);
  EXPECT_TRUE(crowd.front()->is_closed_silently());
  port->expect_service();
  std::size_t kept = crowd.size();
  for (int i = 0; i < 6000 && kept > port->most_strangers(); ++i) {
    std::this_thread::sleep_for(milliseconds(10));  // the port has not accepted all of them yet
    kept = static_cast<std::size_t>(
        std::count_if(crowd.begin(), crowd.end(), [](const auto& stranger) { return stranger->is_open(); }));
  }
  EXPECT_LE(kept, port->most_strangers());
}

// A distant rank needs some round trips to prove its identity. A nearer attacker can open many
// connections in that time. These connections must not displace the rank.
TEST_P(PortStrangers, OfOneAddressDisplaceThemselvesOnly) {
  if (!GetParam().has_addresses) GTEST_SKIP() << "local sockets have no addresses";
  const auto port = open("secret");
  const Caller far(*port, "127.0.0.9");
  const auto crowd = crowd_at(*port);
  EXPECT_TRUE(crowd.front()->is_closed_silently());
  auto guard = guard_at(*port, "secret");
  EXPECT_TRUE(pass(guard, far.descriptor()).ok());
  port->expect_service();
}

// A slow rank has started the handshake when many strangers connect from the rank's host. These strangers
// must not displace the rank.
TEST_P(PortStrangers, WhoAreSilentDisplaceNoRankOfTheirHostThatHasBegun) {
  const auto port = open("secret");
  Caller slow(*port);
  auto guard = guard_at(*port, "secret");
  slow.say(opening_of(guard));
  ASSERT_TRUE(slow.hears_anything());
  const auto crowd = crowd_at(*port);
  EXPECT_TRUE(crowd.front()->is_closed_silently());
  EXPECT_TRUE(pass(guard, slow.descriptor()).ok());
  port->expect_service();
}

TEST_P(PortStrangers, WhoHaveAnotherTokenOrNoneAreRefused) {
  const auto port = open("secret");
  Caller other(*port), none(*port);
  auto guard = guard_at(*port, "another");
  EXPECT_EQ(pass(guard, other.descriptor()).code(), Code::unauthenticated);
  none.say(port->hello(1));
  std::array<std::byte, security::Guard::message_bytes> answer{};
  ASSERT_TRUE(none.hears_anything());
  EXPECT_EQ(recv(none.descriptor(), answer.data(), answer.size(), MSG_WAITALL),
            static_cast<ssize_t>(answer.size()));
  const auto refusal = security::refusal_by_guard(answer, "it");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code(), Code::unauthenticated);
  EXPECT_TRUE(none.is_closed_silently());
  port->expect_service();
}

TEST_P(PortStrangers, WhoClaimAnotherRankThanTheyHaveProvedAreClosed) {
  if (!GetParam().hellos_have_ranks) GTEST_SKIP() << "a hello to a store contains no rank";
  const auto port = open("secret");
  Caller liar(*port);
  auto guard = guard_at(*port, "secret");
  ASSERT_TRUE(pass(guard, liar.descriptor()).ok());
  liar.speak_as_agreed_by(guard);
  liar.say(port->hello(2));
  EXPECT_TRUE(liar.is_closed_silently());
  port->expect_service();
}

// This process can open no more descriptors while a `DescriptorShortage` exists.
class DescriptorShortage {
 public:
  DescriptorShortage() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const Descriptor lowest(dup(STDERR_FILENO));
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(lowest.get());
    setrlimit(RLIMIT_NOFILE, &now);
  }
  ~DescriptorShortage() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

std::size_t count_lines_with(std::ifstream& log, const std::string& text) {
  log.clear();
  log.seekg(0);
  std::size_t count = 0;
  for (std::string line; std::getline(log, line);) count += line.find(text) != line.npos ? 1 : 0;
  return count;
}

TEST_P(PortStrangers, AShortageOfDescriptorsIsInTheLogOnceAndPasses) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need descriptors of their own";
#endif
  const ScratchFolder folder;
  const std::string file = folder.path() + "/log", warning = "cannot accept a connection now";
  ASSERT_TRUE(log::configure(log::Level::warn, file).ok());
  const auto port = open();
  std::ifstream log(file);
  std::vector<Descriptor> callers;
  for (int i = 0; i < 5; ++i) callers.push_back(port->socket());
  {
    const DescriptorShortage shortage;
    for (const Descriptor& caller : callers) EXPECT_TRUE(port->connect(caller.get(), "127.0.0.1"));
    for (int i = 0; i < 6000 && count_lines_with(log, warning) == 0; ++i)
      std::this_thread::sleep_for(milliseconds(10));
    // Leaves time for more attempts, which must not be logged.
    std::this_thread::sleep_for(milliseconds(300));
  }
  EXPECT_EQ(count_lines_with(log, warning), 1u);
  port->expect_service();
  EXPECT_TRUE(log::configure(log::Level::warn).ok());
}

INSTANTIATE_TEST_SUITE_P(At, PortStrangers, ::testing::ValuesIn(all_kinds_of_port),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace tutti::test
