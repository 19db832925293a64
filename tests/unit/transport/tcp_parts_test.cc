#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/ipv6.h"
#include "transport/driver/timers.h"
#include "transport/stream/frame.h"
#include "transport/tcp/address.h"
#include "transport/tcp/factory.h"
#include "transport/tcp/handshake.h"

namespace tutti::tcp {
namespace {

using namespace std::chrono_literals;

TEST(TcpAddress, IsReadAsItWasWritten) {
  for (const char* text : {"127.0.0.1:1/0000000000000000/131072,1048576,131072",
                           "10.0.0.1:4711,[2001:db8::1]:65535/8c1f00d2b5a69e37/0,1024,1024",
                           "[::1]:9/ffffffffffffffff/4294967295,4294967295,4294967295"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_EQ(format(*address), text);
  }
  EXPECT_EQ(parse_address("1.2.3.4:5,6.7.8.9:10/00000000000000ff/1,2000,3000")->endpoints.size(), 2u);
  EXPECT_EQ(parse_address("1.2.3.4:5/00000000000000ff/1,2000,3000")->nonce, 255u);
  EXPECT_EQ(parse_address("1.2.3.4:5/00000000000000ff/1,2000,3000")->limits.fragment, 3000u);
}

TEST(TcpAddress, AnythingElseIsRefused) {
  const std::string limits = "/131072,1048576,131072";
  for (const char* text : {"",
                           "/",
                           "/0000000000000000",
                           "127.0.0.1:1",
                           "127.0.0.1:1/",
                           "127.0.0.1:1/0",
                           "127.0.0.1:1/000000000000000g",
                           "127.0.0.1:1/00000000000000000",
                           "127.0.0.1/0000000000000000",
                           "127.0.0.1:/0000000000000000",
                           "127.0.0.1:0/0000000000000000",
                           "127.0.0.1:65536/0000000000000000",
                           "127.0.0.1:-1/0000000000000000",
                           "127.0.0.1: 1/0000000000000000",
                           "::1:1/0000000000000000",
                           "[127.0.0.1]:1/0000000000000000",
                           "localhost:1/0000000000000000",
                           "127.0.0.1:1,/0000000000000000",
                           ",127.0.0.1:1/0000000000000000",
                           "[]:1/0000000000000000",
                           "[:1/0000000000000000",
                           "1.2.3.4:5/0000000000000000/0000000000000000"}) {
    EXPECT_FALSE(parse_address(text + limits).has_value()) << text;
  }
  EXPECT_FALSE(parse_address("1.2.3.4:5/0000000000000000").has_value());
  EXPECT_FALSE(parse_address("1.2.3.4:5/0000000000000000/1,2,3").has_value());
  std::string many;
  for (int i = 0; i < 17; ++i) many += i == 0 ? "1.2.3.4:5" : ",1.2.3.4:5";
  EXPECT_FALSE(parse_address(many + "/0000000000000000" + limits).has_value());
}

TEST(TcpHandshake, HelloAndAnswerAreReadAsWritten) {
  Hello hello{handshake_version, 3, 0xfffffffe, max_stripes, 0x0123456789abcdef, 0xfedcba9876543210};
  const auto back = decode_hello(encode(hello));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->version, handshake_version);
  EXPECT_EQ(back->from, 3u);
  EXPECT_EQ(back->to, 0xfffffffeu);
  EXPECT_EQ(back->stripe, max_stripes);
  EXPECT_EQ(back->from_nonce, hello.from_nonce);
  EXPECT_EQ(back->to_nonce, hello.to_nonce);
  for (std::uint32_t verdict = 1; verdict <= 7; ++verdict) {
    EXPECT_EQ(decode_answer(encode(static_cast<Verdict>(verdict))), static_cast<Verdict>(verdict));
  }
  EXPECT_FALSE(decode_answer(encode(static_cast<Verdict>(0))).has_value());
  EXPECT_FALSE(decode_answer(encode(static_cast<Verdict>(8))).has_value());
}

TEST(TcpHandshake, AHelloIsNoAnswerAndGarbageIsNeither) {
  // A process that connects to itself by mistake receives its own hello. The hello must not count
  // as an answer.
  const auto hello = encode(Hello{handshake_version, 1, 2, 0, 3, 4});
  EXPECT_FALSE(decode_answer(std::span(hello).first<answer_bytes>()).has_value());
  EXPECT_FALSE(decode_hello(encode(Hello{handshake_version, 1, 2, max_stripes + 1, 3, 4})).has_value());
  std::mt19937 random(7);
  std::array<std::byte, hello_bytes> bytes;
  for (int round = 0; round < 1000; ++round) {
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_FALSE(decode_hello(bytes).has_value());
    EXPECT_FALSE(decode_answer(std::span(bytes).first<answer_bytes>()).has_value());
  }
  auto other = encode(Hello{handshake_version + 1, 1, 2, 0, 3, 4});
  EXPECT_EQ(decode_hello(other)->version, handshake_version + 1);
  EXPECT_TRUE(begins_like_hello(std::span(hello).first(5)));
  EXPECT_TRUE(begins_like_hello({}));
}

class Counted final : public Timer {
 public:
  explicit Counted(Timers& timers) : timers_(timers) {}
  ~Counted() override { timers_.cancel(*this); }
  void on_timer() override {
    ++calls;
    if (again) timers_.set(*this, Deadline::after(0s));
    if (other != nullptr) timers_.cancel(*other);
  }
  int calls = 0;
  bool again = false;
  Timer* other = nullptr;

 private:
  Timers& timers_;
};

TEST(TcpTimers, CallOnceInOrderAndMayChangeEachOther) {
  Timers timers;
  EXPECT_TRUE(timers.next().is_never());
  EXPECT_FALSE(timers.run());
  Counted first(timers), second(timers), later(timers);
  timers.set(first, Deadline::after(-2s));
  timers.set(second, Deadline::after(-1s));
  timers.set(later, Deadline::after(1h));
  first.other = &second;
  first.again = true;
  EXPECT_TRUE(timers.run());
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.calls, 0);
  first.again = false;
  EXPECT_TRUE(timers.run());
  EXPECT_FALSE(timers.run());
  EXPECT_EQ(first.calls, 2);
  EXPECT_EQ(later.calls, 0);
  EXPECT_FALSE(timers.next().is_never());
  timers.set(later, Deadline::never());
  EXPECT_TRUE(timers.next().is_never());
}

TEST(TcpListen, BindsWhatItAdvertises) {
  Options options;
  options.bind = {"127.0.0.1", "127.0.0.2"};
  const auto transport = create(options);
  ASSERT_TRUE(transport.ok()) << transport.status().to_string();
  const auto address = parse_address((*transport)->address());
  ASSERT_TRUE(address.has_value());
  ASSERT_EQ(address->endpoints.size(), 2u);
  EXPECT_EQ(address->endpoints[0].host(), "127.0.0.1");
  EXPECT_EQ(address->endpoints[1].host(), "127.0.0.2");
  EXPECT_NE(address->nonce, parse_address((*create({}))->address())->nonce);
}

TEST(TcpListen, ListensOnIpv6) {
  Options options;
  options.bind = {"::1"};
  if (!test::has_ipv6_loopback()) GTEST_SKIP() << "this host has no IPv6 loopback";
  const auto transport = create(options);
  ASSERT_TRUE(transport.ok()) << transport.status().to_string();
  EXPECT_TRUE(parse_address((*transport)->address())->endpoints[0].family() == AF_INET6);
}

TEST(TcpListen, AdvertisesWhatItIsTold) {
  Options options;
  options.bind = {"0.0.0.0"};
  EXPECT_EQ(create(options).status().code(), Code::invalid_argument);
  options.advertise = {"192.0.2.7"};
  EXPECT_EQ((*create(options))->address().rfind("192.0.2.7:", 0), 0u);
  options.advertise = {"localhost"};
  const auto by_name = create(options);
  ASSERT_TRUE(by_name.ok()) << by_name.status().to_string();
  EXPECT_TRUE(parse_address((*by_name)->address())->endpoints[0].is_loopback());
  options.advertise = {"no such name"};
  EXPECT_EQ(create(options).status().code(), Code::invalid_argument);
}

TEST(TcpListen, TakesTheFirstFreePortOfARange) {
  std::vector<std::unique_ptr<Transport>> taken;
  Options options;
  std::uint16_t base = 0;
  // The test looks for a range of three free ports. If another program takes one of the ports
  // first, the test tries the next range.
  for (std::uint16_t first = 21'000; base == 0 && first < 29'000;
       first = static_cast<std::uint16_t>(first + 3)) {
    options.first_port = first;
    options.last_port = static_cast<std::uint16_t>(first + 2);
    taken.clear();
    for (int i = 0; i < 3; ++i) {
      auto made = create(options);
      if (made.ok()) taken.push_back(std::move(made).take());
    }
    if (taken.size() == 3) base = first;
  }
  ASSERT_NE(base, 0) << "no three free ports next to each other";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(parse_address(taken[static_cast<std::size_t>(i)]->address())->endpoints[0].port(), base + i);
  }
  const auto full = create(options);
  EXPECT_EQ(full.status().code(), Code::resource_exhausted);
  const std::string range = std::to_string(base) + "-" + std::to_string(base + 2);
  EXPECT_EQ(full.status().message(), "tcp: no port of " + range + " (TUTTI_PORT_RANGE) is free on 127.0.0.1");
  options.last_port = static_cast<std::uint16_t>(base - 1);
  EXPECT_EQ(create(options).status().code(), Code::invalid_argument);
}

TEST(TcpListen, ForeignAndSenselessAddressesAreErrors) {
  for (const char* address : {"192.0.2.1", "host", "", "127.0.0.1:80"}) {
    Options options;
    options.bind = {address};
    EXPECT_EQ(create(options).status().code(), Code::invalid_argument) << address;
  }
  Options options;
  options.bind = {};
  EXPECT_EQ(create(options).status().code(), Code::invalid_argument);
}

TEST(TcpReach, LoopbackAddressesStayOnTheirHost) {
  const auto transport = std::move(create({})).take();
  PeerInfo peer;
  EXPECT_EQ(transport->can_reach(peer).code(), Code::unreachable);
  peer.addresses["tcp"] = "nonsense";
  EXPECT_EQ(transport->can_reach(peer).code(), Code::unreachable);
  peer.addresses["tcp"] = "127.0.0.1:1/0000000000000000/131072,1048576,131072";
  EXPECT_TRUE(transport->can_reach(peer).ok());
}

}  // namespace
}  // namespace tutti::tcp
