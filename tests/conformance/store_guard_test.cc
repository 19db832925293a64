// Tests stores and clients that have a token.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tutti/store_server.h>

#include "rendezvous/store/tcp/store_client.h"
#include "rendezvous/store/tcp/wire.h"
#include "tests/support/guards.h"

namespace tutti::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

std::unique_ptr<tcp::StoreServer> guarded(const std::string& token) {
  tcp::StoreServerOptions options;
  if (!token.empty()) options.credentials = holder_of(token);
  return tcp::StoreServer::create(options).take();
}

Result<std::shared_ptr<tcp::StoreClient>> connect(const tcp::StoreServer& server, const std::string& token) {
  tcp::StoreClientOptions options;
  options.rank = 3;
  if (!token.empty()) options.credentials = holder_of(token);
  return tcp::try_connect_store(*parse_address(server.address(), server.port()), Deadline::after(seconds(30)),
                                options);
}

TEST(StoreGuard, TheSameTokenOpensTheStore) {
  const auto server = guarded("secret");
  const auto client = connect(*server, "secret").take();
  ASSERT_TRUE(client->set("key", "value", Deadline::after(seconds(30))).ok());
  EXPECT_EQ(client->get("key", Deadline::after(seconds(30))).take(), "value");
  EXPECT_EQ(client->nonce(), server->nonce());
}

TEST(StoreGuard, AnotherTokenOrNoneIsUnauthenticatedOnBothSides) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"secret", "other"}, {"secret", ""}, {"", "secret"}};
  for (const auto& [at_server, at_client] : cases) {
    const auto server = guarded(at_server);
    const auto client = connect(*server, at_client);
    EXPECT_EQ(client.status().code(), Code::unauthenticated) << client.status().to_string();
    EXPECT_THAT(client.status().message(), HasSubstr("token"));
    EXPECT_THAT(client.status().message(), HasSubstr(std::to_string(server->port())));
    // The server records the refusal soon after it has sent its answer.
    for (int i = 0; i < 3000 && server->last_refusal().empty(); ++i) usleep(10'000);
    EXPECT_THAT(server->last_refusal(), HasSubstr(std::to_string(server->port())));
    EXPECT_TRUE(connect(*server, at_server).ok());
  }
}

TEST(StoreGuard, NothingIsParsedBeforeTheProof) {
  const auto server = guarded("secret");
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const SocketAddress address = *parse_address(server->address(), server->port());
  ASSERT_EQ(::connect(fd, address.raw(), address.length), 0);
  // The stranger guesses the token. Its first message to the guard is well formed. The stranger
  // also sends a request that would set a key, and does not wait for the guard's verdict.
  auto guard = guard_of("guess", {security::Service::store, 0, security::nobody});
  guard.advance(fd);
  const store_wire::ClientHello hello;
  const std::string set("\x0a\0\0\0\x08\x01\x12\x03key\x1a\x01x", 14);
  ASSERT_GT(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), 0);
  static_cast<void>(send(fd, set.data(), set.size(), MSG_NOSIGNAL));
  EXPECT_EQ(pass(guard, fd).code(), Code::unauthenticated);
  close(fd);
  EXPECT_FALSE(connect(*server, "secret").take()->exists("key", Deadline::after(seconds(30))).take());
}

TEST(StoreGuard, HalfOpenConnectionsAreBoundedAndTheOldestGoes) {
  tcp::StoreServerOptions options;
  options.credentials = holder_of("secret");
  options.max_strangers = 20;
  options.greeting_timeout = std::chrono::hours(1);
  const auto server = tcp::StoreServer::create(options).take();
  const auto early = connect(*server, "secret").take();
  std::vector<int> strangers;
  const SocketAddress address = *parse_address(server->address(), server->port());
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(strangers.back(), address.raw(), address.length), 0);
    static_cast<void>(send(strangers.back(), "\xd7tut", i % 2 == 0 ? 4 : 0, MSG_NOSIGNAL));
  }
  ASSERT_TRUE(early->set("key", "value", Deadline::after(seconds(30))).ok());
  EXPECT_TRUE(connect(*server, "secret").ok());
  EXPECT_LE(server->connections(), 20u + 2u);
  for (const int fd : strangers) close(fd);
}

}  // namespace
}  // namespace tutti::test
