// Tests connections that send a hello as clients do, and then send little or no data.
#include <array>
#include <future>
#include <vector>

#include "tests/conformance/store_stranger.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string exists_k = frame(std::string("\x08\x07\x12\x01k", 5));

TEST(StoreStrangers, WhoSaysAHelloAndNothingElseIsDropped) {
  tcp::StoreServerOptions options;
  options.greeting_timeout = seconds(3);
  const auto server = serve(options);
  Stranger silent(*server), half_request(*server), client(*server);
  for (Stranger* each : {&silent, &half_request, &client}) each->greet();
  half_request.say(exists_k.substr(0, 6));
  client.say(exists_k);
  EXPECT_TRUE(silent.is_dropped());
  EXPECT_TRUE(half_request.is_dropped());
  // The server does not drop an idle client that has made a request.
  EXPECT_TRUE(eventually([&] { return server->connections() == 1; }));
}

TEST(StoreStrangers, ADripOfBytesDoesNotBuyTime) {
  tcp::StoreServerOptions options;
  options.greeting_timeout = seconds(1);
  options.frame_timeout = std::chrono::hours(1);
  const auto server = serve(options);
  Stranger stranger(*server);
  stranger.greet();
  stranger.say(std::string("\x00\x00\x10\x00", 4));  // a request of 1 MiB
  EXPECT_TRUE(eventually([&] {
    stranger.say("x");
    return server->connections() == 0;
  }));
}

TEST(StoreStrangers, WhoSaysAHelloAndNothingElseIsOneOfFew) {
  tcp::StoreServerOptions options;
  options.max_strangers = 5;
  options.greeting_timeout = std::chrono::hours(1);
  const auto server = serve(options);
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(std::make_unique<Stranger>(*server));
    strangers.back()->greet();
  }
  EXPECT_LE(server->connections(), 5u);
  EXPECT_TRUE(client_of(*server)->set("k", "v", ample()).ok());
}

TEST(StoreStrangers, WhoIsIdleMakesRoomAndWhoHoldsKeysDoesNot) {
  tcp::StoreServerOptions options;
  options.max_connections = 10;
  const auto server = serve(options);
  const auto rank = client_of(*server);
  ASSERT_TRUE(rank->hold("job", ample()).ok());
  std::vector<std::unique_ptr<Stranger>> idle;
  for (int i = 0; i < 9; ++i) {
    idle.push_back(std::make_unique<Stranger>(*server));
    idle.back()->greet();
    idle.back()->say(exists_k);
  }
  ASSERT_TRUE(eventually([&] { return server->connections() == 10; }));
  std::vector<std::shared_ptr<Store>> more;
  for (int i = 0; i < 9; ++i) {
    more.push_back(client_of(*server));
    ASSERT_TRUE(more.back()->hold("job", ample()).ok());
  }
  for (auto& each : idle) EXPECT_TRUE(each->is_dropped());
  ASSERT_TRUE(rank->set("k", "v", ample()).ok());
  EXPECT_FALSE(
      tcp::connect_store(server->address(), server->port(), Deadline::after(milliseconds(1500))).ok());
  for (const auto& client : more) EXPECT_EQ(client->get("k", ample()).take(), "v");
}

// The store is full of ranks that have left a will (keys that the store sets when the rank's
// connection ends). One of these ranks waits for a key. A new connection displaces none of the ranks.
TEST(StoreStrangers, WhoHasLeftAWillStays) {
  tcp::StoreServerOptions options;
  options.max_connections = 4;
  options.ranks_hold = true;
  const auto server = serve(options);
  const std::string death = "death", table = "table";
  const std::array ranks = {client_of(*server), client_of(*server), client_of(*server), client_of(*server)};
  for (const auto& rank : ranks) ASSERT_TRUE(rank->set_will({&death, 1}, "gone", ample()).ok());
  auto waiting = std::async(std::launch::async, [&] { return ranks[0]->get(table, ample()); });
  EXPECT_FALSE(
      tcp::connect_store(server->address(), server->port(), Deadline::after(milliseconds(2500))).ok());
  for (std::size_t i = 1; i < ranks.size(); ++i) EXPECT_TRUE(ranks[i]->set(table, "v", ample()).ok());
  const Result<std::string> read = waiting.get();
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(*read, "v");
}

// Strangers wait for many long keys that are never set. The server limits the memory for these
// keys, and still serves ranks.
TEST(StoreStrangers, WhoWaitForALotAreBounded) {
  tcp::StoreServerOptions options;
  options.max_buffered_bytes = std::size_t{2} << 20;
  const auto server = serve(options);
  std::string wait("\x08\x03\x30\xe0\xd4\x03", 6);  // WAIT, 60 s
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(1000 + i);
    wait += std::string("\x12\xe8\x07", 3) + number + std::string(1000 - number.size(), 'k');
  }
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(std::make_unique<Stranger>(*server));
    strangers.back()->greet();
    strangers.back()->say(frame(wait));
  }
  EXPECT_TRUE(eventually([&] { return server->connections() < 5; })) << server->connections();
  const auto rank = client_of(*server);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(rank->set("k", std::to_string(i), ample()).ok());
  strangers.clear();
  EXPECT_TRUE(eventually([&] { return server->connections() == 1; }));
  EXPECT_TRUE(rank->set("k", std::string(std::size_t{1} << 20, 'v'), ample()).ok());
}

// A client makes its first request when it connects. So the server does not treat a client that is idle
// afterwards as a stranger.
TEST(StoreStrangers, AClientThatTakesItsTimeIsNone) {
  tcp::StoreServerOptions options;
  options.greeting_timeout = seconds(3);
  const auto server = serve(options);
  const auto client = client_of(*server);
  std::this_thread::sleep_for(seconds(4));
  EXPECT_TRUE(client->set("k", "v", ample()).ok());
}

}  // namespace
}  // namespace tutti::test
