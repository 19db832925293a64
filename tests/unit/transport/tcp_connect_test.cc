#include <barrier>
#include <cstdio>

#include <sys/resource.h>

#include "tests/support/ipv6.h"
#include "tests/unit/transport/tcp_world.h"

namespace tutti::tcp {
namespace {

using namespace std::chrono_literals;
using conformance::collective;

std::string with_endpoints(const std::string& address, const std::string& endpoints) {
  return endpoints + address.substr(address.find('/'));
}

// Returns the address of a port without a listener.
std::string dead_endpoint() {
  const auto gone = create({}).take();
  return meeting::format_endpoints(parse_address(gone->address())->endpoints);
}

// All ranks send to all other ranks at the same moment, as their first action.
void storm(int size, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const OpenSockets before = OpenSockets::now();
    Pair world({}, size);
    std::barrier ready(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        Node& node = world[static_cast<std::size_t>(rank)];
        std::vector<std::unique_ptr<Send>> sends;
        std::vector<std::unique_ptr<Recv>> recvs;
        for (int peer = 0; peer < size; ++peer) {
          if (peer == rank) continue;
          for (std::uint64_t sequence = 0; sequence < 3; ++sequence) {
            const std::size_t bytes = sequence == 1 ? 200'000 : 8;
            sends.push_back(
                std::make_unique<Send>(bytes, collective(sequence), rank * 3 + static_cast<int>(sequence)));
            recvs.push_back(std::make_unique<Recv>(bytes, peer, collective(sequence)));
            node.post(*recvs.back());
          }
        }
        ready.arrive_and_wait();
        for (std::size_t i = 0; i < sends.size(); ++i) {
          const int slot = static_cast<int>(i / 3);
          node.post(slot < rank ? slot : slot + 1, *sends[i]);
        }
        for (auto& send : sends) EXPECT_TRUE(send->wait().ok()) << send->status.to_string();
        for (auto& recv : recvs) {
          ASSERT_TRUE(recv->wait().ok()) << recv->status.to_string();
          EXPECT_TRUE(recv->holds(recv->source * 3 + static_cast<int>(recv->tag.sequence)));
          EXPECT_EQ(recv->completions, 1);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    // Only this loop drives the ranks now. It continues until the ranks have closed their surplus
    // connections. Each pair of ranks keeps one connection, whose two ends are both in this
    // process.
    for (std::size_t rank = 0; rank < world.nodes.size(); ++rank) {
      EXPECT_TRUE(world[rank].until(
          [&] { return OpenSockets::now().connected - before.connected == size * (size - 1); }));
    }
    EXPECT_EQ(OpenSockets::now().listening - before.listening, size);
  }
}

TEST(TcpCrossConnect, OneConnectionOfTwoSurvives) { storm(2, 150); }
TEST(TcpCrossConnect, StormOfFour) { storm(4, 30); }
TEST(TcpCrossConnect, StormOfEight) { storm(8, 6); }

TEST(TcpCrossConnect, TheOtherDirectionHelpsWhereOneIsBlocked) {
  // Rank 0 has a wrong address for rank 1, without a listener. Rank 1 has the right address for
  // rank 0. Rank 0's connection would win if both ranks could connect.
  auto zero = create({}).take(), one = create({}).take();
  const std::string address_0 = zero->address(), address_1 = one->address();
  auto node_0 =
      make_node(0, {peer_info(0, address_0), peer_info(1, with_endpoints(address_1, dead_endpoint()))},
                std::move(zero));
  auto node_1 = make_node(1, {peer_info(0, address_0), peer_info(1, address_1)}, std::move(one));
  expect_exchange(*node_0, 0, *node_1, 1, 0);
  std::thread other([&] { node_1->shut_down(); });
  node_0->shut_down();
  other.join();
}

TEST(TcpConnect, AddressesAreTriedInTurn) {
  auto zero = create({}).take(), one = create({}).take();
  const std::string address_0 = zero->address();
  const std::string real = one->address();
  const std::string address_1 = dead_endpoint() + "," + dead_endpoint() + "," + real;
  auto node_0 = make_node(0, {peer_info(0, address_0), peer_info(1, address_1)}, std::move(zero));
  auto node_1 = make_node(1, {peer_info(0, address_0), peer_info(1, real)}, std::move(one));
  Send send(8, collective(0), 1);
  Recv recv(8, 0, collective(0));
  node_1->post(recv);
  node_0->post(1, send);
  EXPECT_TRUE(recv.wait().ok()) << recv.status.to_string();
  EXPECT_TRUE(send.wait().ok()) << send.status.to_string();
  std::thread other([&] { node_1->shut_down(); });
  node_0->shut_down();
  other.join();
}

TEST(TcpConnect, WorksOverIpv6) {
  Options options;
  options.bind = {"::1"};
  if (!test::has_ipv6_loopback()) GTEST_SKIP() << "this host has no IPv6 loopback";
  Pair world(options);
  expect_exchange(world[0], 0, world[1], 1, 0, 300'000);
}

TEST(TcpConnect, NobodyThereIsALostPeerLongBeforeTheDeadline) {
  auto transport = create({}).take();
  const std::string address = transport->address();
  auto node = make_node(0, {peer_info(0, address), peer_info(1, with_endpoints(address, dead_endpoint()))},
                        std::move(transport), 1h);
  Send send(8, collective(0), 1);
  node->post(1, send);
  EXPECT_EQ(send.wait().code(), Code::peer_lost);
  EXPECT_NE(send.status.message().find("rank 1 (host host1, pid 1001)"), std::string::npos)
      << send.status.to_string();
  EXPECT_EQ(send.status.peer(), 1);
}

class Deaf {
 public:
  Deaf() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<sockaddr*>(&at), length), 0);
    EXPECT_EQ(::listen(descriptor_, 16), 0);
    getsockname(descriptor_, reinterpret_cast<sockaddr*>(&at), &length);
    endpoint_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  ~Deaf() { close(descriptor_); }
  const std::string& endpoint() const { return endpoint_; }
  int accept_one() { return accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  int descriptor_;
  std::string endpoint_;
};

TEST(TcpConnect, APeerThatNeverAnswersIsUnreachableAtTheDeadline) {
  Deaf deaf;
  auto transport = create({}).take();
  const std::string address = transport->address();
  auto node = make_node(0, {peer_info(0, address), peer_info(1, with_endpoints(address, deaf.endpoint()))},
                        std::move(transport), 300ms);
  Send send(8, collective(0), 1);
  node->post(1, send);
  EXPECT_EQ(send.wait().code(), Code::unreachable) << send.status.to_string();
  EXPECT_NE(send.status.message().find("in time"), std::string::npos) << send.status.to_string();
}

TEST(TcpConnect, WhereTheNetworkDoesNotLeadIsSaidBeforeTheDeadline) {
  auto transport = create({}).take();
  const std::string address = transport->address();
  const std::string nowhere = "255.255.255.255:4711";  // TCP cannot connect there
  auto node = make_node(0, {peer_info(0, address), peer_info(1, with_endpoints(address, nowhere))},
                        std::move(transport), std::chrono::hours(1));
  Send send(8, collective(0), 1);
  node->post(1, send);
  EXPECT_EQ(send.wait().code(), Code::unreachable) << send.status.to_string();
  for (const char* const part :
       {"no connection to 255.255.255.255:4711: ", "unreachable", "TUTTI_PORT_RANGE"})
    EXPECT_NE(send.status.message().find(part), std::string::npos) << send.status.to_string();
}

// In `Played`, the test itself plays the other side of the handshake.
struct Played {
  Deaf deaf;
  std::unique_ptr<Node> node;
  Send send{8, collective(0), 1};
  std::unique_ptr<RawSocket> peer;

  Played() {
    auto transport = create({}).take();
    const std::string address = transport->address();
    node = make_node(0, {peer_info(0, address), peer_info(1, with_endpoints(address, deaf.endpoint()))},
                     std::move(transport), 20s);
    node->post(1, send);
    peer = std::make_unique<RawSocket>(deaf.accept_one());
    const auto hello = peer->receive(hello_bytes);
    EXPECT_EQ(hello.size(), hello_bytes);
    EXPECT_EQ(decode_hello(std::span(hello).first<hello_bytes>())->to, 1u);
  }
};

TEST(TcpConnect, NothingIsSentBeforeTheWelcome) {
  Played played;
  // The test sends half an answer, pauses, and sends the rest. Only the whole answer makes rank 0 send its
  // message.
  const auto answer = encode(Verdict::welcome);
  played.peer->send(std::span(answer).first(7));
  for (int i = 0; i < 20; ++i) {
    played.node->driver.progress();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(played.send.over.load(), 0u);
  played.peer->send(std::span(answer).subspan(7));
  EXPECT_TRUE(played.send.wait().ok()) << played.send.status.to_string();
  EXPECT_EQ(played.peer->receive(72).size(), 72u);  // one frame: header and payload
}

TEST(TcpConnect, RefusalsAreToldAsWhatTheyAre) {
  const std::vector<std::pair<Verdict, Code>> expected = {
      {Verdict::connected, Code::unreachable},  {Verdict::stranger, Code::unreachable},
      {Verdict::wrong_rank, Code::unreachable}, {Verdict::wrong_version, Code::protocol_error},
      {Verdict::gone, Code::peer_lost},
  };
  for (const auto& [verdict, code] : expected) {
    Played played;
    played.peer->send(encode(verdict));
    EXPECT_EQ(played.send.wait().code(), code) << played.send.status.to_string();
  }
}

TEST(TcpConnect, AnAnswerThatIsNoneIsTriedAgain) {
  Played played;
  played.peer->send(std::string_view("HTTP/1.1 400 Bad Request\r\n"));
  played.peer = std::make_unique<RawSocket>(played.deaf.accept_one());
  EXPECT_EQ(played.peer->receive(hello_bytes).size(), hello_bytes);
  played.peer.reset(new RawSocket(-1));  // closed before the answer
  played.peer = std::make_unique<RawSocket>(played.deaf.accept_one());
  EXPECT_EQ(played.peer->receive(hello_bytes).size(), hello_bytes);
  played.peer->send(encode(Verdict::wait));  // no more data follows
  played.peer = std::make_unique<RawSocket>(played.deaf.accept_one());
  EXPECT_EQ(played.peer->receive(hello_bytes).size(), hello_bytes);
  played.peer->send(encode(Verdict::welcome));
  EXPECT_TRUE(played.send.wait().ok()) << played.send.status.to_string();
}

TEST(TcpConnect, AnEndWithoutGoodbyeIsALostPeer) {
  for (const bool reset : {false, true}) {
    Played played;
    played.peer->send(encode(Verdict::welcome));
    EXPECT_TRUE(played.send.wait().ok());
    Recv recv(8, 1, collective(1));
    played.node->post(recv);
    if (!reset) played.peer->receive(72);  // unread bytes would turn the close into a reset
    played.peer.reset();
    EXPECT_EQ(recv.wait().code(), Code::peer_lost) << recv.status.to_string();
    EXPECT_NE(recv.status.message().find("rank 1 (host host1, pid 1001)"), std::string::npos);
  }
}

TEST(TcpConnect, FramesThatAreNoneBreakTheProtocol) {
  Played played;
  played.peer->send(encode(Verdict::welcome));
  EXPECT_TRUE(played.send.wait().ok());
  Recv recv(8, 1, collective(1));
  played.node->post(recv);
  played.peer->send(std::string(200, 'x'));
  EXPECT_EQ(recv.wait().code(), Code::protocol_error) << recv.status.to_string();
}

// A listener without a free descriptor pauses, and continues when one is free again.
TEST(TcpConnect, WaitsForDescriptors) {
  // UBSan needs a descriptor whenever it sees a new type. This extra pair makes UBSan see all types
  // before the limit is set.
  Pair shown;
  Send first(8, collective(0), 1);
  Recv second(8, 0, collective(0));
  shown[1].post(second);
  shown[0].post(1, first);
  ASSERT_TRUE(second.wait().ok() && first.wait().ok());
  Pair world;
  rlimit before{}, tight{};
  getrlimit(RLIMIT_NOFILE, &before);
  const int highest = dup(0);
  close(highest);
  tight = before;
  tight.rlim_cur = static_cast<rlim_t>(highest);  // leaves no free descriptor
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  Send send(8, collective(0), 1);
  Recv recv(8, 0, collective(0));
  world[1].post(recv);
  world[0].post(1, send);
  std::atomic<std::uint32_t> never{0};
  world[0].driver.wait(never, Deadline::after(50ms));
  EXPECT_EQ(send.over.load(), 0u);
  tight.rlim_cur = static_cast<rlim_t>(highest + 1);  // leaves one: enough to connect, but not to accept
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  world[0].driver.wait(never, Deadline::after(50ms));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(recv.wait().ok()) << recv.status.to_string();
  EXPECT_TRUE(send.wait().ok()) << send.status.to_string();
}

}  // namespace
}  // namespace tutti::tcp
