// Tests that the launcher accepts the agents that it expects, and no other processes.
#include "tools/run/callback.h"

#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "core/descriptor.h"
#include "core/security/ends.h"
#include "tests/support/greetings.h"
#include "tests/support/ipv6.h"
#include "tests/support/tcp_proxy.h"
#include "tools/run/call_hello.h"
#include "tools/run/dial.h"
#include "tools/run/environment.h"
#include "tools/run/event_loop.h"
#include "transport/meeting/socket.h"

namespace tutti::tools {
namespace {

using namespace std::chrono_literals;
using meeting::Connection;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::string agents_secret(64, 'a'), another_secret(64, 'b');

SocketAddress literal(const std::string& host) { return *parse_address(host, 0); }

std::uint16_t port_at_end(const std::string& endpoint) {
  return static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

Result<Connection> dial_for(const Call& call, std::chrono::nanoseconds limit) {
  Call limited = call;
  limited.limit = limit;
  return dial(limited);
}

// The launcher runs on the test's thread. Each agent that dials runs on its own thread.
class CallbackTest : public testing::Test {
 protected:
  void SetUp() override { open({literal("127.0.0.1")}); }

  void open(const std::vector<SocketAddress>& addresses, std::optional<PortRange> ports = {}) {
    auto opened = Callback::open(loop_, addresses, "a job", on_agent(), {.ports = ports, .proof_limit = 1h});
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    callback_ = *std::move(opened);
  }
  Callback::OnAgent on_agent() {
    return [this](std::uint32_t host, Connection connection) {
      EXPECT_TRUE(connection.is_encrypted());
      EXPECT_TRUE(arrived_.emplace(host, std::move(connection)).second);
    };
  }
  Call call_of(std::uint32_t host, const std::string& secret = agents_secret) const {
    return {.endpoints = callback_->endpoints(), .job = "a job", .host = host, .secret = secret};
  }

  void run_until(const std::function<bool()>& done) {
    const Deadline limit = Deadline::after(30s);
    while (!done()) {
      ASSERT_FALSE(limit.expired()) << "it has not happened within 30 s";
      io_.restart();
      io_.run_one_for(10ms);
    }
  }
  void expect_accepted(const Call& call) {
    const Result<Connection> made = answer_to(call, 30s);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    run_until([&] { return arrived_.contains(call.host); });
  }
  // The agent dials only for a short time, because a refused agent would repeat its attempts.
  void expect_refused(const Call& call) {
    const std::size_t before = arrived_.size();
    EXPECT_EQ(answer_to(call, 200ms).status().code(), Code::timeout);
    EXPECT_EQ(arrived_.size(), before);
  }
  Result<Connection> answer_to(const Call& call, std::chrono::nanoseconds limit) {
    auto answer = std::async(std::launch::async, dial_for, call, limit);
    run_until([&] { return answer.wait_for(0s) == std::future_status::ready; });
    return answer.get();
  }

  Descriptor stranger() {
    Descriptor made(test::connect_to("127.0.0.1", port_at_end(callback_->endpoints().front())));
    EXPECT_EQ(fcntl(made.get(), F_SETFL, O_NONBLOCK), 0);
    io_.restart();
    io_.poll();  // the listener accepts the connection
    return made;
  }
  // Returns a connection whose guard has finished or failed, before the hello.
  Connection judged(std::uint32_t host, const std::string& secret, const std::string& job = "a job") {
    using State = security::Guard::State;
    const security::Parties parties{security::Service::launch, host, security::nobody};
    Connection made(stranger(), security::Guard::connecting(call_credentials(job, secret).take(), parties,
                                                            Deadline::after(30s)));
    run_until([&] {
      const State state = made.pass();
      return state == State::done || state == State::failed;
    });
    return made;
  }
  Connection proved(std::uint32_t host, const std::string& secret) {
    Connection made = judged(host, secret);
    EXPECT_FALSE(made.is_guarded());
    return made;
  }
  // Returns the reason why the launcher refuses the connection, or `ok`.
  Status verdict_on(std::uint32_t host, const std::string& secret, const std::string& job = "a job") {
    const Connection made = judged(host, secret, job);
    return made.is_guarded() ? made.guard()->status() : Status();
  }
  void say_hello(Connection& connection, std::uint32_t host) {
    int error = 0;
    EXPECT_EQ(connection.write(encode_call_hello(host), error), CallHello().size());
  }
  void expect_closed(Connection& connection) {
    std::array<std::byte, 100> place;
    int error = 0;
    run_until([&] { return connection.read(place, error) == 0 && error != EAGAIN; });
  }
  // Returns everything that the launcher sends until it closes the connection.
  std::string heard_until_closed(const Descriptor& socket) {
    std::string heard;
    std::array<char, 1000> place;
    run_until([&] {
      const ssize_t got = recv(socket.get(), place.data(), place.size(), MSG_DONTWAIT);
      if (got > 0) heard.append(place.data(), static_cast<std::size_t>(got));
      return got == 0 || (got < 0 && errno != EAGAIN);
    });
    return heard;
  }

  asio::io_context io_{1};
  AsioLoop loop_{io_};
  std::unique_ptr<Callback> callback_;
  std::map<std::uint32_t, Connection> arrived_;
};

TEST_F(CallbackTest, AnAgentThatHasTheSecretOfItsHostIsAccepted) {
  for (const std::uint32_t host : {0u, 3u, 70'000u}) {
    ASSERT_TRUE(callback_->expect(host, agents_secret + std::to_string(host)).ok());
    expect_accepted(call_of(host, agents_secret + std::to_string(host)));
  }
  EXPECT_EQ(arrived_.size(), 3u);
}

TEST_F(CallbackTest, WhatBothSayArrives) {
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  Result<Connection> agent = answer_to(call_of(1), 30s);
  ASSERT_TRUE(agent.ok());
  run_until([&] { return arrived_.contains(1); });
  const auto carry = [&](Connection& from, Connection& to) {
    const std::string text = "a record";
    int error = 0;
    EXPECT_EQ(from.write(std::as_bytes(std::span(text)), error), text.size());
    std::string heard(100, '\0');
    std::size_t got = 0;
    run_until([&] { return (got = to.read(std::as_writable_bytes(std::span(heard)), error)) != 0; });
    EXPECT_EQ(heard.substr(0, got), text);
  };
  carry(*agent, arrived_.at(1));
  carry(arrived_.at(1), *agent);
}

TEST_F(CallbackTest, WhoDoesNotHaveTheSecretIsRefused) {
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  ASSERT_TRUE(callback_->expect(2, another_secret).ok());
  EXPECT_EQ(verdict_on(1, std::string(64, 'c')).code(), Code::unauthenticated);
  EXPECT_EQ(verdict_on(1, another_secret).code(), Code::unauthenticated);
  EXPECT_EQ(verdict_on(1, agents_secret, "another job").code(), Code::unauthenticated);
  EXPECT_EQ(verdict_on(3, agents_secret).code(), Code::unreachable);
  EXPECT_FALSE(callback_->expect(3, "").ok());
  EXPECT_EQ(verdict_on(3, agents_secret).code(), Code::unreachable);
  expect_refused(call_of(1, another_secret));
  expect_accepted(call_of(1));
  expect_accepted(call_of(2, another_secret));
}

TEST_F(CallbackTest, AfterAnAgentNobodyIsAcceptedForItsHost) {
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  expect_accepted(call_of(1));
  EXPECT_EQ(verdict_on(1, agents_secret).code(), Code::unreachable);
  ASSERT_TRUE(callback_->expect(1, another_secret).ok());
  EXPECT_EQ(verdict_on(1, another_secret).code(), Code::unreachable);
  expect_refused(call_of(1));
}

TEST_F(CallbackTest, OfTwoThatHaveProvedTheSecretOnlyOneIsAccepted) {
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  Connection first = proved(1, agents_secret), second = proved(1, agents_secret);
  say_hello(second, 1);
  run_until([&] { return arrived_.contains(1); });
  say_hello(first, 1);
  expect_closed(first);
}

TEST_F(CallbackTest, ASecretThatWasReplacedIsWorthNothing) {
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  Connection early = proved(1, agents_secret);
  ASSERT_TRUE(callback_->expect(1, another_secret).ok());
  say_hello(early, 1);
  expect_closed(early);
  EXPECT_EQ(verdict_on(1, agents_secret).code(), Code::unauthenticated);
}

TEST_F(CallbackTest, WhoHasProvedOneHostCannotBeAnother) {
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  ASSERT_TRUE(callback_->expect(2, another_secret).ok());
  Connection agent = proved(1, agents_secret);
  say_hello(agent, 2);
  expect_closed(agent);
  EXPECT_THAT(arrived_, IsEmpty());
}

TEST_F(CallbackTest, StrangersAreClosedWithoutAnAnswer) {
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  for (const std::string& greeting : test::greetings_of_others()) {
    const Descriptor other = stranger();
    send(other.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
    EXPECT_EQ(heard_until_closed(other), "");
  }
  // The answer to a hello without a proof only says that a proof is needed.
  const Descriptor unproved = stranger();
  const CallHello hello = encode_call_hello(1);
  EXPECT_EQ(send(unproved.get(), hello.data(), hello.size(), MSG_NOSIGNAL), 16);
  EXPECT_LE(heard_until_closed(unproved).size(), security::Guard::message_bytes);
  Connection proved_one = proved(1, agents_secret);
  int error = 0;
  EXPECT_EQ(proved_one.write(std::as_bytes(std::span("GET / HTTP/1.1")), error), 15u);
  expect_closed(proved_one);
  EXPECT_THAT(arrived_, IsEmpty());
  expect_accepted(call_of(1));
}

TEST_F(CallbackTest, SilentStrangersKeepNoAgentOut) {
  std::vector<Descriptor> silent;
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  for (int i = 0; i < 300; ++i) silent.push_back(stranger());
  expect_accepted(call_of(1));
}

TEST_F(CallbackTest, TheSecretMayArriveAfterTheCall) {
  const std::uint16_t port = port_at_end(callback_->endpoints().front());
  test::Weather weather;
  const test::TcpProxy network("127.0.0.9", "127.0.0.1", {port}, weather);
  ASSERT_EQ(network.problem(), "");
  Call call = call_of(1);
  call.endpoints = {"127.0.0.9:" + std::to_string(port)};
  auto answer = std::async(std::launch::async, dial_for, call, 30s);
  run_until(
      [&] { return network.records().size() >= 2; });  // a second call shows that the first one was refused
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  run_until([&] { return answer.wait_for(0s) == std::future_status::ready; });
  EXPECT_TRUE(answer.get().ok());
  run_until([&] { return arrived_.contains(1); });
}

TEST_F(CallbackTest, AnAgentStopsCallingOnceTheLauncherDoesNotWaitForIt) {
  for (const bool answers : {true, false}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    Descriptor read_end(ends[0]);
    const Descriptor write_end(ends[1]);
    Call call = call_of(1);
    call.abandoned = write_end.get();
    auto answer = std::async(std::launch::async, dial_for, call, 1h);
    // If `answers` is true, the launcher refuses the agent again and again, since the launcher does not know
    // the secret. If `answers` is false, the launcher does not answer, and the agent waits.
    if (answers) run_until([runs = 0]() mutable { return ++runs > 10; });
    read_end.reset();
    if (answers) run_until([&] { return answer.wait_for(0s) == std::future_status::ready; });
    EXPECT_EQ(answer.get().status().code(), Code::aborted);
  }
}

TEST_F(CallbackTest, AnAgentTriesOtherEndpointsAndBelievesNoImpostor) {
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  const std::array impostors_address = {literal("127.0.0.1")};
  const auto nobody_comes = [](std::uint32_t, Connection) { FAIL() << "an impostor has an agent"; };
  const auto impostor = Callback::open(loop_, impostors_address, "a job", nobody_comes).take();
  ASSERT_TRUE(impostor->expect(1, another_secret).ok());
  const auto closed = Callback::open(loop_, impostors_address, "a job", nobody_comes).take()->endpoints();
  const Descriptor silent = meeting::listen_on("a silent process", "127.0.0.1", 0, 0).take();
  Call call = call_of(1);
  const std::string right = call.endpoints.front();
  call.endpoints = {closed.front(), impostor->endpoints().front(), security::own_address(silent.get())};
  expect_refused(call);
  call.endpoints.push_back(right);
  expect_accepted(call);
}

TEST_F(CallbackTest, WhatIsReadOnTheNetworkIsWorthNothing) {
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  const std::uint16_t port = port_at_end(callback_->endpoints().front());
  test::Weather weather;
  const test::TcpProxy network("127.0.0.9", "127.0.0.1", {port}, weather);
  ASSERT_EQ(network.problem(), "");
  Call call = call_of(1);
  call.endpoints = {"127.0.0.9:" + std::to_string(port)};
  Result<Connection> agent = answer_to(call, 30s);
  ASSERT_TRUE(agent.ok());
  run_until([&] { return arrived_.contains(1); });
  const auto records = network.records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_THAT(records[0].said, Not(HasSubstr("TUTTILN")));
  EXPECT_THAT(records[0].said + records[0].answered, Not(HasSubstr(agents_secret)));
  // Another launcher that expects this secret must not accept the recorded bytes.
  open({literal("127.0.0.1")});
  arrived_.clear();
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  const Descriptor replays = stranger();
  send(replays.get(), records[0].said.data(), records[0].said.size(), MSG_NOSIGNAL);
  heard_until_closed(replays);
  EXPECT_THAT(arrived_, IsEmpty());
}

TEST_F(CallbackTest, TheOwnerMayDestroyItWhenAnAgentCalls) {
  const Callback::OnAgent arrives = on_agent();
  const std::array address = {literal("127.0.0.1")};
  callback_ = Callback::open(loop_, address, "a job", [&](std::uint32_t host, Connection connection) {
                callback_.reset();
                arrives(host, std::move(connection));
              }).take();
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  const Call call = call_of(1);
  expect_accepted(call);
  EXPECT_EQ(test::connect_to("127.0.0.1", port_at_end(call.endpoints.front())), -1);
}

TEST_F(CallbackTest, ListensOnTheSamePortOfSeveralAddresses) {
  open({literal("127.0.0.1"), literal("127.0.0.2")});
  const std::vector<std::string> endpoints = callback_->endpoints();
  const std::string port = std::to_string(port_at_end(endpoints.front()));
  EXPECT_THAT(endpoints, ElementsAre("127.0.0.1:" + port, "127.0.0.2:" + port));
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  Call call = call_of(1);
  call.endpoints = {endpoints.back()};
  expect_accepted(call);
}

TEST_F(CallbackTest, LeavesOutAddressesThatCannotBeUsed) {
  const SocketAddress of_nobody = literal("192.0.2.1");
  open({of_nobody, literal("127.0.0.1"), of_nobody});
  EXPECT_THAT(callback_->endpoints(), ElementsAre(StartsWith("127.0.0.1:")));
  const auto none = Callback::open(loop_, std::array{of_nobody}, "a job", on_agent());
  EXPECT_EQ(none.status().code(), Code::invalid_argument);
  EXPECT_THAT(none.status().message(), StartsWith("calls of agents: cannot listen on 192.0.2.1: "));
}

TEST_F(CallbackTest, ListensOnIPv6) {
  if (!test::has_ipv6_loopback()) GTEST_SKIP() << "this host has no IPv6 loopback";
  open({literal("::1")});
  EXPECT_THAT(callback_->endpoints(), ElementsAre(StartsWith("[::1]:")));
  ASSERT_TRUE(callback_->expect(1, agents_secret).ok());
  expect_accepted(call_of(1));
}

TEST_F(CallbackTest, ListensOnPortsOfTheRange) {
  const auto first = static_cast<std::uint16_t>(find_free_port().take());
  const auto last = static_cast<std::uint16_t>(std::min(first + 20, 65535));
  open({literal("127.0.0.1")}, PortRange{first, last});
  const std::uint16_t port = port_at_end(callback_->endpoints().front());
  EXPECT_GE(port, first);
  EXPECT_LE(port, last);
  const std::array address = {literal("127.0.0.1")};
  const auto second = Callback::open(loop_, address, "a job", on_agent(), {.ports = PortRange{port, port}});
  EXPECT_EQ(second.status().code(), Code::resource_exhausted);
  EXPECT_THAT(second.status().message(), HasSubstr("TUTTI_PORT_RANGE"));
  // Another process has a port of the range at the second address. The launcher gets a different port there.
  const auto taken = meeting::listen_on("another process", "127.0.0.2", first, last).take();
  open({literal("127.0.0.1"), literal("127.0.0.2")}, PortRange{first, last});
  EXPECT_NE(callback_->endpoints().back(), security::own_address(taken.get()));
}

}  // namespace
}  // namespace tutti::tools
