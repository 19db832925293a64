// Tests problems that only the TCP store has: strangers, invalid data, and clients and servers that
// die.
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tutti/address.h>
#include <tutti/store_server.h>

#include "rendezvous/store/tcp/store_client.h"
#include "rendezvous/store/tcp/wire.h"
#include "tests/conformance/store_stranger.h"
#include "tests/support/ipv6.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::size_t resident_bytes() {
  std::size_t pages = 0, resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%zu %zu", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(TcpStore, DropsWhatIsNoClient) {
  const auto server = serve();
  const auto client = client_of(*server);
  ASSERT_TRUE(client->set("k", "v", ample()).ok());
  for (const std::string& greeting :
       {std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(64, 'z'),
        std::string(4096, '\0'), std::string(16, '\xff')}) {
    Stranger stranger(*server);
    stranger.say(greeting);
    EXPECT_TRUE(stranger.is_dropped());
  }
  EXPECT_EQ(client->get("k", ample()).take(), "v");
}

TEST(TcpStore, CountsRequests) {
  const auto server = serve();
  const auto client = client_of(*server);
  const std::uint64_t before = server->requests();
  ASSERT_TRUE(client->set("k", "v", ample()).ok());
  EXPECT_EQ(client->get("k", ample()).take(), "v");
  EXPECT_EQ(server->requests(), before + 2);
}

TEST(TcpStore, DropsGarbageAfterTheGreeting) {
  const auto server = serve();
  const auto client = client_of(*server);
  std::string too_many_keys;
  for (int i = 0; i < 2'000'000; ++i) too_many_keys += std::string("\x12\0", 2);
  for (const std::string& garbage :
       {frame("\xff\xff\xff\xff garbage"), frame(""), std::string(64, '\xff'),
        frame("\x08\x02\x12\xff\xff\xff\xff\x0f"), frame(too_many_keys), frame("\x08\x02")}) {
    Stranger stranger(*server);
    stranger.greet();
    stranger.say(garbage);
    EXPECT_TRUE(stranger.is_dropped());
  }
  ASSERT_TRUE(client->set("k", "v", ample()).ok());
  EXPECT_EQ(server->connections(), 1u);
}

TEST(TcpStore, AnnouncedLengthsCostNothing) {
  const auto server = serve();
  const auto client = client_of(*server);
  const std::size_t before = resident_bytes();
  std::vector<std::unique_ptr<Stranger>> strangers;
  const std::uint32_t length = store_wire::little_endian32(store_wire::max_frame_bytes);
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(std::make_unique<Stranger>(*server));
    strangers.back()->greet();
    strangers.back()->say(std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + "only this");
  }
  ASSERT_TRUE(client->set("k", "v", ample()).ok());
  // The strangers have announced 50 requests of 16 MiB each.
  EXPECT_LT(resident_bytes(), before + (std::size_t{200} << 20));
  Stranger larger(*server);
  larger.greet();
  larger.say("\xff\xff\xff\x7f");
  EXPECT_TRUE(larger.is_dropped());
}

TEST(TcpStore, HalfARequestDisturbsNobodyAndIsDropped) {
  tcp::StoreServerOptions options;
  options.greeting_timeout = seconds(3);
  options.frame_timeout = seconds(3);
  const auto server = serve(options);
  Stranger silent(*server), half_greeting(*server), half_length(*server), half_body(*server);
  half_greeting.say("TUTT");
  half_length.greet();
  half_length.say(std::string("\x10\0", 2));
  half_body.greet();
  half_body.say(frame(std::string(1000, 'a')).substr(0, 500));
  const auto client = client_of(*server);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client->set("k", std::to_string(i), ample()).ok());
  EXPECT_TRUE(silent.is_dropped());
  EXPECT_TRUE(half_greeting.is_dropped());
  EXPECT_TRUE(half_length.is_dropped());
  EXPECT_TRUE(half_body.is_dropped());
  // An idle client is not dropped.
  std::this_thread::sleep_for(options.frame_timeout);
  EXPECT_EQ(client->get("k", ample()).take(), "99");
}

TEST(TcpStore, AClientThatDoesNotTakeItsResponseIsDropped) {
  tcp::StoreServerOptions options;
  options.frame_timeout = seconds(5);
  const auto server = serve(options);
  const auto client = client_of(*server);
  ASSERT_TRUE(client->set("k", std::string(max_store_value_bytes, 'x'), ample()).ok());
  Stranger stranger(*server);
  stranger.greet();
  stranger.say(frame(std::string("\x08\x02\x12\x01k\x12\x01k", 8)));  // GET k, k
  EXPECT_TRUE(eventually([&] { return server->connections() == 1; }));
}

TEST(TcpStore, AClientProcessThatDiesWhileItWaits) {
  const auto server = serve();
  const auto client = client_of(*server);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto own = tcp::connect_store(server->address(), server->port(), ample());
    const bool set = own.ok() && (*own)->set("child", "here", ample()).ok();
    if (set) static_cast<void>((*own)->get("never", ample()).ok());
    _exit(1);
  }
  EXPECT_EQ(client->get("child", ample()).take(), "here");
  EXPECT_TRUE(eventually([&] { return server->connections() == 2; }));
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(eventually([&] { return server->connections() == 1; }));
  ASSERT_TRUE(client->set("never", "too late", ample()).ok());
  EXPECT_EQ(client->get("child", ample()).take(), "here");
}

TEST(TcpStore, APortThatAnOutgoingConnectionHasIsSaidToBeSo) {
  const auto server = serve();
  const auto client = tcp::connect_store(server->address(), server->port(), ample()).take();
  tcp::StoreServerOptions options;
  options.port = client->local_address().port();
  const auto second = tcp::StoreServer::create(options);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("is in use"), std::string::npos) << second.status().to_string();
  EXPECT_NE(second.status().message().find("an outgoing connection"), std::string::npos);
  EXPECT_NE(second.status().message().find("ip_local_port_range"), std::string::npos);
  EXPECT_NE(second.status().message().find("choose a port outside that range"), std::string::npos);
}

TEST(TcpStore, AParkedClientThatTalksIsDropped) {
  const auto server = serve();
  Stranger stranger(*server);
  stranger.greet();
  const std::string wait_for_k("\x08\x02\x12\x01k\x30\xe0\xd4\x03", 9);  // GET k, 60 s
  stranger.say(frame(wait_for_k));
  std::this_thread::sleep_for(milliseconds(20));
  stranger.say(frame(wait_for_k));
  EXPECT_TRUE(stranger.is_dropped());
}

TEST(TcpStore, AServerThatGoesIsPeerLost) {
  auto server = serve();
  const auto waiting = client_of(*server), idle = client_of(*server);
  std::thread waiter([&] { EXPECT_EQ(waiting->get("never", ample()).status().code(), Code::peer_lost); });
  std::this_thread::sleep_for(milliseconds(20));
  const std::uint16_t port = server->port();
  server = nullptr;
  waiter.join();
  EXPECT_EQ(idle->set("k", "v", ample()).code(), Code::peer_lost);
  // A new server at the same address does not have the old keys, so an old client must not use it.
  tcp::StoreServerOptions options;
  options.port = port;
  server = serve(options);
  EXPECT_EQ(idle->set("k", "v", ample()).code(), Code::peer_lost);
  EXPECT_TRUE(client_of(*server)->set("k", "v", ample()).ok());
}

// Returns a listener for a test that imitates a server.
int listen_somewhere(SocketAddress& address) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address = *parse_address("127.0.0.1", 0);
  EXPECT_EQ(bind(listener, address.raw(), address.length), 0);
  EXPECT_EQ(listen(listener, 8), 0);
  address.length = sizeof(address.storage);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return listener;
}

// A server accepts clients and greets them, but never answers `set`. Each `set` of the client times out, but
// the client does not count the server as lost.
TEST(TcpStore, ASilentServerIsATimeout) {
  SocketAddress address;
  const int listener = listen_somewhere(address);
  std::vector<int> accepted;
  std::thread server([&] {
    for (int i = 0; i < 2; ++i) {
      accepted.push_back(accept(listener, nullptr, nullptr));
      const store_wire::ServerHello hello;
      EXPECT_EQ(send(accepted.back(), &hello, sizeof(hello), MSG_NOSIGNAL),
                static_cast<ssize_t>(sizeof(hello)));
      // A new client makes one request as part of connecting, which gets an answer. When the client connects
      // again, it makes no such request.
      if (i > 0) continue;
      EXPECT_EQ(send(accepted.back(), "\0\0\0\0", 4, MSG_NOSIGNAL), 4);
    }
  });
  const auto client = tcp::connect_store("127.0.0.1", address.port(), ample()).take();
  const Status first = client->set("k", "v", Deadline::after(seconds(0)));
  EXPECT_EQ(first.code(), Code::timeout) << first.to_string();
  // The second request needs a new connection, since the answer to the first may still arrive on the old
  // connection.
  EXPECT_EQ(client->set("k", "v", Deadline::after(seconds(4))).code(), Code::timeout);
  server.join();
  EXPECT_EQ(accepted.size(), 2u);
  for (const int fd : accepted) close(fd);
  close(listener);
}

TEST(TcpStore, ConnectingWaitsForTheServer) {
  std::uint16_t port = 0;
  { port = serve()->port(); }
  std::unique_ptr<tcp::StoreServer> server;
  std::thread starter([&] {
    std::this_thread::sleep_for(milliseconds(100));
    tcp::StoreServerOptions options;
    options.port = port;
    server = serve(options);
  });
  EXPECT_TRUE(tcp::connect_store("localhost", port, ample()).ok());
  starter.join();
}

TEST(TcpStore, ConnectErrorsSayWhatIsWrong) {
  std::uint16_t free_port = 0;
  { free_port = serve()->port(); }
  const Status refused = tcp::connect_store("127.0.0.1", free_port, Deadline::after(seconds(2))).status();
  EXPECT_EQ(refused.code(), Code::unreachable);
  EXPECT_NE(refused.message().find("127.0.0.1:" + std::to_string(free_port)), std::string::npos)
      << refused.to_string();
  EXPECT_NE(refused.message().find("refused"), std::string::npos) << refused.to_string();
  const Status unknown =
      tcp::connect_store("no-such-host.invalid", 29500, Deadline::after(seconds(1))).status();
  EXPECT_EQ(unknown.code(), Code::unreachable);
  EXPECT_NE(unknown.message().find("no-such-host.invalid"), std::string::npos) << unknown.to_string();
  const auto server = serve();
  const Status other = tcp::connect_store(server->address(), server->port(), Deadline::after(seconds(3)),
                                          {.nonce = std::string(32, '0')})
                           .status();
  EXPECT_EQ(other.code(), Code::unreachable);
  EXPECT_NE(other.message().find("another session"), std::string::npos) << other.to_string();
  EXPECT_TRUE(
      tcp::connect_store(server->address(), server->port(), ample(), {.nonce = server->nonce()}).ok());
}

// Another session's store answers the first attempt. Later attempts get no answer.
TEST(TcpStore, AnAttemptThatRunsOutOfTimeDoesNotHideWhatIsWrong) {
  SocketAddress address;
  const int listener = listen_somewhere(address);
  std::thread server([&] {
    const int accepted = accept(listener, nullptr, nullptr);
    const store_wire::ServerHello hello;
    EXPECT_EQ(send(accepted, &hello, sizeof(hello), MSG_NOSIGNAL), static_cast<ssize_t>(sizeof(hello)));
    char ignored[64];
    while (recv(accepted, ignored, sizeof(ignored), 0) > 0) {
    }
    close(accepted);
  });
  const Status status =
      tcp::connect_store("127.0.0.1", address.port(), Deadline::after(seconds(3)), {.nonce = "another"})
          .status();
  server.join();
  close(listener);
  EXPECT_EQ(status.code(), Code::unreachable);
  EXPECT_NE(status.message().find("another session"), std::string::npos) << status.to_string();
}

TEST(TcpStore, PortInUseIsNamed) {
  const auto server = serve();
  tcp::StoreServerOptions options;
  options.port = server->port();
  const Status status = tcp::StoreServer::create(options).status();
  EXPECT_EQ(status.code(), Code::resource_exhausted);
  EXPECT_TRUE(
      status.message().starts_with("port " + std::to_string(server->port()) + " on 127.0.0.1 is in use"))
      << status.to_string();
  options.addresses = {""};
  EXPECT_NE(tcp::StoreServer::create(options).status().message().find("is in use"), std::string::npos);
  // If a port is taken, the server tries the next port of the range.
  options.addresses = {"127.0.0.1"};
  options.last_port = static_cast<std::uint16_t>(std::min(65535, server->port() + 200));
  EXPECT_GT(serve(options)->port(), server->port());
  options.addresses = {"192.0.2.77"};
  const Status foreign = tcp::StoreServer::create(options).status();
  EXPECT_EQ(foreign.code(), Code::invalid_argument);
  EXPECT_NE(foreign.message().find("not an address of this host"), std::string::npos) << foreign.to_string();
}

TEST(TcpStore, IPv6AndAllAddresses) {
  const auto all = serve({.addresses = {""}});
  EXPECT_TRUE(tcp::connect_store("127.0.0.1", all->port(), ample()).ok());
  if (!has_ipv6_loopback()) GTEST_SKIP() << "this host has no IPv6 loopback";
  const auto v6 = tcp::StoreServer::create({.addresses = {"::1"}});
  ASSERT_TRUE(v6.ok()) << v6.status().to_string();
  EXPECT_EQ((*v6)->address(), "::1");
  const auto client = tcp::connect_store("::1", (*v6)->port(), ample()).take();
  EXPECT_TRUE(client->set("k", "v", ample()).ok());
  EXPECT_TRUE(tcp::connect_store("[::1]", (*v6)->port(), ample()).ok());
  EXPECT_EQ(client->local_address().host(), "::1");
  const auto both = serve({.addresses = {"127.0.0.1", "::1"}});
  ASSERT_EQ(both->endpoints().size(), 2u);
  EXPECT_TRUE(
      tcp::connect_store("::1", both->endpoints()[1].port, ample()).take()->add("n", 1, ample()).ok());
  EXPECT_EQ(client_of(*both)->add("n", 1, ample()).take(), 2);
}

TEST(TcpStore, ConnectionsAreCapped) {
  tcp::StoreServerOptions options;
  options.max_connections = 3;
  const auto server = serve(options);
  std::vector<std::shared_ptr<Store>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(client_of(*server));
    ASSERT_TRUE(clients.back()->hold("job", ample()).ok());
  }
  EXPECT_FALSE(
      tcp::connect_store(server->address(), server->port(), Deadline::after(milliseconds(100))).ok());
  clients.pop_back();
  EXPECT_TRUE(tcp::connect_store(server->address(), server->port(), ample()).ok());
  EXPECT_TRUE(clients.front()->set("k", "v", ample()).ok());
}

TEST(TcpStore, MemoryIsCapped) {
  tcp::StoreServerOptions options;
  options.max_bytes = 10'000;
  const auto server = serve(options);
  const auto client = client_of(*server);
  ASSERT_TRUE(client->set("a", std::string(8000, 'a'), ample()).ok());
  EXPECT_EQ(client->set("b", std::string(8000, 'b'), ample()).code(), Code::resource_exhausted);
  ASSERT_TRUE(client->set("a", std::string(9000, 'a'), ample()).ok());
  EXPECT_TRUE(client->delete_key("a", ample()).take());
  EXPECT_TRUE(client->set("b", std::string(9000, 'b'), ample()).ok());
}

// The server lets clients wait while the process has no free descriptors, and accepts them later.
TEST(TcpStore, SurvivesRunningOutOfDescriptors) {
  const auto server = serve();
  const auto client = client_of(*server);
  // UBSan opens descriptors when it checks a type for the first time. The next two calls make UBSan open
  // them before the limit is lowered.
  ASSERT_TRUE(client->set("k", "u", ample()).ok());
  // The client holds a key, as a rank does. A server without free descriptors closes idle clients
  // that hold no key.
  ASSERT_TRUE(client->hold("job", ample()).ok());
  Stranger late(*server);
  ASSERT_TRUE(eventually([&] { return server->connections() == 2; }));
  late.close();
  ASSERT_TRUE(eventually([&] { return server->connections() == 1; }));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const SocketAddress address = *parse_address(server->address(), server->port());
  EXPECT_EQ(connect(fd, address.raw(), address.length), 0);
  std::this_thread::sleep_for(milliseconds(150));
  EXPECT_TRUE(client->set("k", "v", ample()).ok());
  EXPECT_EQ(server->connections(), 1u);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(eventually([&] { return server->connections() == 2; }));
  close(fd);
}

TEST(TcpStore, AForkedChildGetsAnErrorAndDoesNoHarm) {
  auto server = serve();
  auto client = client_of(*server);
  ASSERT_TRUE(client->set("k", "v", ample()).ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool refused = client->set("k", "child", ample()).code() == Code::unsupported;
    client = nullptr;
    server = nullptr;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(client->get("k", ample()).take(), "v");
  EXPECT_TRUE(client_of(*server)->set("k", "w", ample()).ok());
}

}  // namespace
}  // namespace tutti::test
