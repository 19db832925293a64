// Tests the link between the launcher and an agent, over plain and encrypted connections.
#include "tools/run/link.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <tools/run/link.pb.h>
#include <unistd.h>

#include "tools/run/event_loop.h"

namespace tutti::tools {
namespace {

using namespace std::chrono_literals;
using meeting::Connection;

constexpr std::size_t longest_record = std::size_t{4} << 20;

// An `Owner` keeps the reports of its link.
struct Owner final : LinkEvents {
  void on_record(std::string_view bytes) override {
    record::FromLauncher from_launcher;
    ASSERT_TRUE(from_launcher.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    records.push_back(from_launcher.input().bytes());
    if (then) then();
  }
  void on_end(const Status& status) override {
    EXPECT_TRUE(why.ok()) << "the link has ended twice";
    why = status;
    if (then) then();
  }

  std::unique_ptr<Link> link;
  std::vector<std::string> records;
  Status why;
  std::function<void()> then;
};

record::FromLauncher record_with(std::string bytes) {
  record::FromLauncher from_launcher;
  from_launcher.mutable_input()->set_bytes(std::move(bytes));
  return from_launcher;
}

std::string frame_of(const std::string& record) {
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8) frame.push_back(static_cast<char>(record.size() >> shift));
  return frame + record;
}

std::pair<Descriptor, Descriptor> socket_pair() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::pair<Connection, Connection> encrypted_pair() {
  security::Settings settings;
  settings.token = Secret("the secret of this job and host");
  settings.tls = true;
  const security::SharedCredentials credentials = security::Credentials::create(settings).take();
  const security::Parties parties = {security::Service::control, 3, 0};
  auto [left, right] = socket_pair();
  std::pair<Connection, Connection> pair = {
      Connection(std::move(left), security::Guard::connecting(credentials, parties, Deadline::after(30s))),
      Connection(std::move(right), security::Guard::accepting(credentials, security::Service::control, 0,
                                                              Deadline::after(30s)))};
  for (int turn = 0; turn < 20; ++turn) {
    pair.first.pass();
    pair.second.pass();
  }
  EXPECT_TRUE(pair.first.is_encrypted() && pair.second.is_encrypted());
  return pair;
}

class LinkTest : public testing::Test {
 protected:
  LinkTest() { std::tie(left_socket_, right_socket_) = socket_pair(); }

  void link(Owner& owner, Connection connection, const LinkOptions& options = {30s, longest_record}) {
    owner.link = std::make_unique<Link>(loop_, std::move(connection), owner, options);
  }
  // Links the left end. The test reads and writes the right end itself.
  void link_left(const LinkOptions& options = {30s, longest_record}) {
    link(left_, Connection(std::move(left_socket_)), options);
  }
  void say(std::string_view bytes) const {
    ASSERT_EQ(::send(right_socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Runs the loop until `happened` returns true.
  template <class Condition>
  void run_until(Condition happened) {
    const Deadline limit = Deadline::after(30s);
    while (!happened() && !limit.expired()) io_.run_one_for(100ms);
    ASSERT_TRUE(happened()) << "it has not happened within 30 s";
  }
  void run_for(std::chrono::milliseconds time) { io_.run_for(time); }

  asio::io_context io_{1};
  AsioLoop loop_{io_};
  Owner left_, right_;
  Descriptor left_socket_, right_socket_;
};

// `LinkPairTest` has two links. The parameter says whether their connection is encrypted.
class LinkPairTest : public LinkTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      std::tie(left_connection_, right_connection_) = encrypted_pair();
    } else {
      left_connection_ = Connection(std::move(left_socket_));
      right_connection_ = Connection(std::move(right_socket_));
    }
  }
  void link_both(const LinkOptions& options = {30s, longest_record}) {
    link(left_, std::move(left_connection_), options);
    link(right_, std::move(right_connection_), options);
  }

  Connection left_connection_, right_connection_;
};

INSTANTIATE_TEST_SUITE_P(Link, LinkPairTest, testing::Bool(),
                         [](const auto& pair) { return pair.param ? "Encrypted" : "Plain"; });

TEST_P(LinkPairTest, CarriesRecordsInBothDirections) {
  link_both();
  left_.link->send(record_with("one"));
  left_.link->send(record_with("two"));
  right_.link->send(record_with("three"));
  run_until([&] { return right_.records.size() == 2 && left_.records.size() == 1; });
  EXPECT_EQ(right_.records, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(left_.records, std::vector<std::string>{"three"});
}

TEST_P(LinkPairTest, CarriesLargeRecords) {
  link_both();
  const std::string large(longest_record - 32, 'l');
  left_.link->send(record_with(large));
  EXPECT_GT(left_.link->backlog(), 0U);
  left_.link->send(record_with("small"));
  right_.link->send(record_with(large));
  run_until([&] { return right_.records.size() == 2 && left_.records.size() == 1; });
  EXPECT_TRUE(left_.records == std::vector{large});
  EXPECT_TRUE(right_.records == (std::vector{large, std::string("small")}));
  EXPECT_EQ(left_.link->backlog(), 0U);
}

TEST_P(LinkPairTest, CarriesManySmallRecordsInTheirOrder) {
  link_both();
  std::vector<std::string> sent;
  for (int i = 0; i < 20'000; ++i) {
    sent.push_back(std::to_string(i));
    left_.link->send(record_with(sent.back()));
  }
  run_until([&] { return right_.records.size() == sent.size(); });
  EXPECT_EQ(right_.records, sent);
}

TEST_P(LinkPairTest, KeepsWhatASlowPeerDoesNotTake) {
  link(left_, std::move(left_connection_));
  const std::string large(1 << 20, 's');
  std::size_t before = 0;
  for (int i = 0; i < 8; ++i) {
    left_.link->send(record_with(large));
    EXPECT_GT(left_.link->backlog(), before);
    before = left_.link->backlog();
  }
  EXPECT_GE(before, 7 * large.size());
  run_for(20ms);
  EXPECT_EQ(left_.link->backlog(), before);
  link(right_, std::move(right_connection_));
  run_until([&] { return right_.records.size() == 8; });
  EXPECT_TRUE(std::ranges::all_of(right_.records, [&](const auto& bytes) { return bytes == large; }));
}

TEST_P(LinkPairTest, EndsWhenTheOtherSideFallsSilent) {
  link(left_, std::move(left_connection_), {200ms, longest_record});
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(left_.why.to_string(), "timeout: nothing has arrived from it for 200ms");
  run_for(100ms);  // the owner fails if the link ends a second time
}

TEST_P(LinkPairTest, EndsWhenTheOtherSideCloses) {
  link_both();
  right_.link->send(record_with("last"));
  right_.link->close();
  EXPECT_TRUE(right_.why.ok());
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(left_.why.to_string(), "peer_lost: the connection has ended");
  EXPECT_EQ(left_.records, std::vector<std::string>{"last"});
  left_.link->send(record_with("too late"));
  EXPECT_EQ(left_.link->backlog(), 0U);
}

TEST_P(LinkPairTest, AFailedSendDoesNotHideWhatHasArrived) {
  link_both();
  right_.link->send(record_with("last"));
  right_.link.reset();
  for (int i = 0; i < 3; ++i) left_.link->send(record_with("nobody reads this"));
  EXPECT_TRUE(left_.why.ok()) << "only the loop may report the end";
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(left_.why.code(), Code::peer_lost);
  EXPECT_EQ(left_.records, std::vector<std::string>{"last"});
}

TEST_P(LinkPairTest, TheOwnerMayDestroyTheLinkInOnRecord) {
  link_both();
  right_.then = [&] { right_.link.reset(); };
  left_.link->send(record_with("one"));
  left_.link->send(record_with("two"));
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(right_.records, std::vector<std::string>{"one"});
  EXPECT_TRUE(right_.why.ok());
}

TEST_P(LinkPairTest, TheOwnerMayCloseTheLinkInOnRecord) {
  link_both();
  right_.then = [&] { right_.link->close(); };
  left_.link->send(record_with("one"));
  left_.link->send(record_with("two"));
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(right_.records, std::vector<std::string>{"one"});
  EXPECT_TRUE(right_.why.ok());
}

TEST_P(LinkPairTest, TheOwnerMayDestroyTheLinkInOnEnd) {
  link_both();
  left_.then = [&] { left_.link.reset(); };
  right_.link.reset();
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(left_.link, nullptr);
}

TEST_P(LinkPairTest, TheOwnerMayDestroyTheLinkWhenItIsSilent) {
  link(left_, std::move(left_connection_), {50ms, longest_record});
  left_.then = [&] { left_.link.reset(); };
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(left_.why.code(), Code::timeout);
}

TEST_P(LinkPairTest, AShorterLeaseCounts) {
  link(left_, std::move(left_connection_));
  left_.link->set_lease(100ms);
  loop_.rearm();
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(left_.why.code(), Code::timeout);
}

TEST_P(LinkPairTest, ALongerLeaseCounts) {
  link(left_, std::move(left_connection_), {100ms, longest_record});
  left_.link->set_lease(30s);
  run_for(300ms);
  EXPECT_TRUE(left_.why.ok()) << left_.why.to_string();
}

TEST_F(LinkTest, StaysAliveByEmptyFrames) {
  link_left({200ms, longest_record});
  std::string heard;
  run_until([&] {
    say(frame_of(""));
    std::array<char, 64> place;
    const ssize_t got = read(right_socket_.get(), place.data(), place.size());
    heard.append(place.data(), static_cast<std::size_t>(std::max<ssize_t>(0, got)));
    return heard.size() >= 8 * frame_of("").size();  // more frames than the link sends within one lease
  });
  EXPECT_EQ(heard, std::string(heard.size(), '\0'));
  EXPECT_TRUE(left_.why.ok()) << left_.why.to_string();
  EXPECT_TRUE(left_.records.empty());
}

// A process that was stopped must not treat its own pause as silence from the other end.
TEST_F(LinkTest, BytesThatNobodyHasReadYetCount) {
  link_left({200ms, longest_record});
  say(frame_of(record_with("in time").SerializeAsString()));
  std::this_thread::sleep_for(300ms);
  loop_.timers.run();
  EXPECT_TRUE(left_.why.ok()) << left_.why.to_string();
  EXPECT_EQ(left_.records, std::vector<std::string>{"in time"});
}

TEST_F(LinkTest, ReadsRecordsThatArriveByteByByte) {
  link_left();
  const std::string frame = frame_of(record_with("slowly").SerializeAsString());
  for (const char byte : frame_of("") + frame + frame) {
    say({&byte, 1});
    io_.poll();
  }
  run_until([&] { return left_.records.size() == 2; });
  EXPECT_EQ(left_.records, (std::vector<std::string>{"slowly", "slowly"}));
}

TEST_F(LinkTest, RefusesARecordThatIsTooLong) {
  link_left({30s, 8});
  say(frame_of(record_with("1234").SerializeAsString()) + frame_of("123456789"));
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(left_.why.to_string(), "protocol_error: it announces a record of 9 bytes; 8 are allowed");
  EXPECT_EQ(left_.records, std::vector<std::string>{"1234"});
}

TEST_F(LinkTest, RefusesGarbage) {
  link_left();
  say("SSH-2.0-OpenSSH_9.2\r\n");
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(left_.why.code(), Code::protocol_error);
}

TEST_F(LinkTest, RefusesBytesThatAreNotEncryptedAsAgreed) {
  auto [left, right] = encrypted_pair();
  link(left_, std::move(left));
  ASSERT_EQ(::send(right.descriptor(), "0123456789", 10, MSG_NOSIGNAL), 10);
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(left_.why.code(), Code::protocol_error);
}

TEST_F(LinkTest, ReadsWhatItsConnectionHasAlreadyReceived) {
  auto [left, right] = encrypted_pair();
  const std::string said = "hello" + frame_of(record_with("one").SerializeAsString());
  int error = 0;
  ASSERT_EQ(right.write(std::as_bytes(std::span(said)), error), said.size());
  std::array<std::byte, 5> hello;
  ASSERT_EQ(left.read(hello, error), hello.size());
  ASSERT_TRUE(left.has_pending());
  link(left_, std::move(left));
  run_until([&] { return !left_.records.empty(); });
  EXPECT_EQ(left_.records, std::vector<std::string>{"one"});
}

TEST_F(LinkTest, AConnectionThatEndsWithinARecordIsLost) {
  link_left();
  say(frame_of(record_with("half").SerializeAsString()).substr(0, 6));
  right_socket_.reset();
  run_until([&] { return !left_.why.ok(); });
  EXPECT_EQ(left_.why.code(), Code::peer_lost);
  EXPECT_TRUE(left_.records.empty());
}

TEST_F(LinkTest, ReportsThatItsConnectionCannotBeWatched) {
  Descriptor file(memfd_create("not a socket", MFD_CLOEXEC));
  link(left_, Connection(std::move(file)));
  EXPECT_TRUE(left_.why.ok());
  run_until([&] { return !left_.why.ok(); });
  EXPECT_NE(left_.why.message().find("epoll_ctl"), std::string::npos) << left_.why.to_string();
}

// A peer that never stops sending must not starve the loop's other handlers.
TEST_F(LinkTest, OneTurnReadsOnlySoMuch) {
  link_left();
  const std::string frame = frame_of(record_with(std::string(1000, 'x')).SerializeAsString());
  std::size_t sent = 0;
  while (::send(right_socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL) > 0) ++sent;
  ASSERT_GT(sent, 70U);
  run_until([&] { return !left_.records.empty(); });
  EXPECT_LT(left_.records.size(), 70U);
  run_until([&] { return left_.records.size() >= sent - 1; });
}

TEST_F(LinkTest, CloseSendsWhatIsKeptIfThereIsRoom) {
  link_left();
  left_.link->send(record_with("good"));
  left_.link->send(record_with("bye"));
  left_.link->close();
  left_.link->close();
  std::string heard(100, '\0');
  heard.resize(static_cast<std::size_t>(read(right_socket_.get(), heard.data(), heard.size())));
  EXPECT_EQ(heard, frame_of(record_with("good").SerializeAsString()) +
                       frame_of(record_with("bye").SerializeAsString()));
  EXPECT_EQ(read(right_socket_.get(), heard.data(), heard.size()), 0);
}

}  // namespace
}  // namespace tutti::tools
