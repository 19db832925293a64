// Tests what a TCP store does when a client's connection ends. The store removes the keys that the client
// held, and carries out the client's will (keys that the store sets at that moment).
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rendezvous/meeting/exchange.h"
#include "rendezvous/meeting/introduction.h"
#include "rendezvous/store/prefix_store.h"
#include "tests/conformance/store_stranger.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// `StoreProcess` is a store in its own process, which a test can stop and continue.
class StoreProcess {
 public:
  StoreProcess() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    process_ = fork();
    if (process_ == 0) serve_until_killed(ends[1]);
    EXPECT_EQ(read(ends[0], &port_, sizeof port_), static_cast<ssize_t>(sizeof port_));
    for (const int end : ends) close(end);
  }
  StoreProcess(const StoreProcess&) = delete;
  ~StoreProcess() {
    kill(process_, SIGKILL);
    EXPECT_EQ(waitpid(process_, nullptr, 0), process_);
  }

  std::shared_ptr<Store> client() const { return tcp::connect_store("127.0.0.1", port_, ample()).take(); }
  void stop() const {
    kill(process_, SIGSTOP);
    EXPECT_EQ(waitpid(process_, nullptr, WUNTRACED), process_);
  }
  void go_on() const { kill(process_, SIGCONT); }

 private:
  [[noreturn]] static void serve_until_killed(int told) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto server = serve();
    const std::uint16_t port = server->port();
    if (write(told, &port, sizeof port) != sizeof port) _exit(1);
    for (;;) pause();
  }

  pid_t process_ = -1;
  std::uint16_t port_ = 0;
};

Introduction introduction(int rank, int world_size = 2) {
  Introduction self = describe_this_process();
  self.rank = rank;
  self.world_size = world_size;
  return self;
}

TEST(StoreWills, HeldKeysGoWithTheLastWhoHoldsThem) {
  const auto server = serve();
  const auto watcher = client_of(*server);
  auto one = client_of(*server), other = client_of(*server);
  for (const char* key : {"job", "job/a", "job/b/c", "jobs/d", "joa/e"})
    ASSERT_TRUE(watcher->set(key, "v", ample()).ok());
  ASSERT_TRUE(one->hold("job", ample()).ok());
  ASSERT_TRUE(other->hold("job", ample()).ok());
  ASSERT_TRUE(other->hold("job", ample()).ok());  // a second hold by the same client has no effect
  one = nullptr;
  ASSERT_TRUE(eventually([&] { return server->connections() == 2; }));
  EXPECT_EQ(watcher->get("job/a", ample()).take(), "v");  // the server may cache this value from now on
  other = nullptr;
  EXPECT_TRUE(eventually([&] { return !watcher->exists("job/a", ample()).take(); }));
  EXPECT_FALSE(watcher->exists("job/b/c", ample()).take());
  EXPECT_EQ(watcher->get("job/a", Deadline::after(milliseconds(0))).status().code(), Code::timeout);
  for (const char* key : {"job", "jobs/d", "joa/e"}) EXPECT_TRUE(watcher->exists(key, ample()).take()) << key;
}

TEST(StoreWills, HeldKeysGoWhenTheyAreLetGo) {
  const auto server = serve();
  const auto one = client_of(*server), other = client_of(*server);
  ASSERT_TRUE(one->set("job/a", "v", ample()).ok());
  ASSERT_TRUE(one->hold("job", ample()).ok());
  ASSERT_TRUE(other->hold("job", ample()).ok());
  ASSERT_TRUE(one->release(ample()).ok());
  ASSERT_TRUE(one->release(ample()).ok());  // a release without a hold has no effect
  EXPECT_TRUE(one->exists("job/a", ample()).take());
  ASSERT_TRUE(other->release(ample()).ok());
  EXPECT_FALSE(one->exists("job/a", ample()).take());
}

TEST(StoreWills, AWillIsDoneWhenItsConnectionEnds) {
  const auto server = serve();
  const auto watcher = client_of(*server);
  auto one = client_of(*server), other = client_of(*server), wise = client_of(*server);
  const std::vector<std::string> keys = {"there", "missing"};
  ASSERT_TRUE(watcher->set("there", "before", ample()).ok());
  ASSERT_TRUE(one->set_will(std::span(keys), "another will", ample()).ok());
  for (const auto& client : {one, other}) ASSERT_TRUE(client->set_will(keys, "gone", ample()).ok());
  ASSERT_TRUE(wise->set_will(keys, "changed its mind", ample()).ok());
  ASSERT_TRUE(wise->set_will({}, "", ample()).ok());
  wise = one = nullptr;
  ASSERT_TRUE(eventually([&] { return server->connections() == 2; }));
  EXPECT_FALSE(watcher->exists("missing", ample()).take());  // another client still has the same will
  std::thread last([&] { other = nullptr; });
  EXPECT_EQ(watcher->get("missing", ample()).take(), "gone");
  last.join();
  EXPECT_EQ(watcher->get("there", ample()).take(), "before");
  EXPECT_EQ(watcher->set_will(keys, std::string(5000, 'x'), ample()).code(), Code::invalid_argument);
}

// Two clients wait for each other's will when the store ends. The store closes one connection
// before the other one, but neither client has died. So the store must carry out no will, and both
// clients get `peer_lost`.
TEST(StoreWills, NoWillIsDoneByAStoreThatEnds) {
  auto server = serve();
  const std::array clients = {client_of(*server), client_of(*server)};
  const std::array<std::string, 2> deaths = {"death of 0", "death of 1"};
  std::vector<std::future<Result<std::string>>> waits;
  for (const std::size_t i : {0, 1}) ASSERT_TRUE(clients[i]->set_will({&deaths[i], 1}, "gone", ample()).ok());
  for (const std::size_t i : {0, 1})
    waits.push_back(
        std::async(std::launch::async, [&, i] { return clients[i]->get(deaths[1 - i], ample()); }));
  std::this_thread::sleep_for(milliseconds(50));
  server = nullptr;
  for (auto& wait : waits) EXPECT_EQ(wait.get().status().code(), Code::peer_lost);
}

// A client that gives up waiting for an answer makes a new connection for its next call. The store
// must not treat the end of the old connection as the death of the client.
TEST(StoreWills, HeldKeysOutliveAConnectionThatIsMadeAnew) {
  const StoreProcess store;
  const auto client = store.client();
  ASSERT_TRUE(client->hold("job", ample()).ok());
  ASSERT_TRUE(client->set("job/a", "v", ample()).ok());
  const std::vector<std::string> death = {"job/death"};
  ASSERT_TRUE(client->set_will(death, "gone", ample()).ok());
  store.stop();
  EXPECT_EQ(client->exists("job/a", Deadline::after(milliseconds(0))).status().code(), Code::timeout);
  store.go_on();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(client->exists("job/a", ample()).take());
    EXPECT_FALSE(client->exists("job/death", ample()).take());
    std::this_thread::sleep_for(milliseconds(5));
  }
}

// `Meeting` is a rank that waits for another rank to arrive, and counts how often the library checks for an
// interruption.
class Meeting {
 public:
  Meeting(const StoreProcess& store, int rank)
      : outcome_(std::async(std::launch::async, [&store, rank, this] {
          PrefixStore keys("job", store.client());
          ExchangeOptions options;
          options.interrupted = [this] { return ++asked_ > 0 && interrupted_; };
          return exchange(keys, introduction(rank), options, ample()).status();
        })) {}

  // Returns true after the library has made `times` more checks, which show that the rank still
  // waits.
  bool goes_on_waiting(int times) {
    return eventually([this, until = asked_ + times] { return asked_ >= until; });
  }
  void interrupt() { interrupted_ = true; }
  Status outcome() { return outcome_.get(); }

 private:
  std::atomic<int> asked_ = 0;
  std::atomic<bool> interrupted_ = false;
  std::future<Status> outcome_;
};

// A rank has one time limit for a store's answer, and another for a new connection. Each store
// stalls for longer than both limits together.
TEST(StoreWills, AStoreThatStallsWhileRanksMeetIsNotTakenForDead) {
  const std::array<StoreProcess, 2> stores;
  Meeting first[] = {{stores[0], 0}, {stores[1], 1}};
  for (Meeting& each : first) EXPECT_TRUE(each.goes_on_waiting(1));
  for (const StoreProcess& each : stores) each.stop();
  for (Meeting& each : first) EXPECT_TRUE(each.goes_on_waiting(2));
  for (const StoreProcess& each : stores) each.go_on();
  Meeting last[] = {{stores[0], 1}, {stores[1], 0}};
  for (Meeting* const each : {&first[0], &last[0], &first[1], &last[1]}) {
    const Status status = each->outcome();
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
}

TEST(StoreWills, WhoIsInterruptedDoesNotWaitForAStoreThatStalls) {
  const std::array<StoreProcess, 2> stores;
  Meeting meetings[] = {{stores[0], 0}, {stores[1], 1}};
  for (Meeting& each : meetings) EXPECT_TRUE(each.goes_on_waiting(1));
  for (const StoreProcess& each : stores) each.stop();
  for (Meeting& each : meetings) EXPECT_TRUE(each.goes_on_waiting(1));
  const auto begin = Deadline::Clock::now();
  for (Meeting& each : meetings) each.interrupt();
  for (const int rank : {0, 1}) {
    const Status status = meetings[rank].outcome();
    EXPECT_EQ(status.code(), Code::aborted) << status.to_string();
    EXPECT_EQ(status.peer(), rank);
  }
  EXPECT_LT(Deadline::Clock::now() - begin, seconds(30));  // far less than the deadline of a minute
}

TEST(StoreWills, RanksThatWereKilledWhileTheyMetAreNotInTheWayOfTheNext) {
  const auto server = serve();
  const auto watcher = client_of(*server);
  for (const int killed : {0, 1}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      PrefixStore keys("job", client_of(*server));
      static_cast<void>(exchange(keys, introduction(killed), {}, ample()));
      _exit(1);
    }
    const std::string key = "job/rank/" + std::to_string(killed);
    ASSERT_TRUE(watcher->wait({&key, 1}, ample()).ok());
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(eventually([&] { return !watcher->exists(key, ample()).take(); }));
    std::thread second([&] {
      PrefixStore keys("job", client_of(*server));
      EXPECT_TRUE(exchange(keys, introduction(1), {}, ample()).ok());
    });
    PrefixStore keys("job", client_of(*server));
    EXPECT_TRUE(exchange(keys, introduction(0), {}, ample()).ok());
    second.join();
  }
}

// The survivors keep their connections to the store after they have left the meeting. The keys of the dead
// rank must still be removed.
TEST(StoreWills, WhatADeadRankHasWrittenGoesWhenTheOthersHaveLeft) {
  const auto server = serve();
  const auto watcher = client_of(*server);
  PrefixStore zero("job", client_of(*server)), one("job", client_of(*server));
  for (const bool met : {false, true}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      PrefixStore keys("job", client_of(*server));
      ExchangeOptions options;
      options.connect = [&](const std::vector<PeerInfo>&) {
        static_cast<void>(keys.set("connects", "", ample()).ok());
        for (;;) pause();
        return Status();
      };
      static_cast<void>(exchange(keys, introduction(1, met ? 2 : 3), options, ample()).ok());
      _exit(1);
    }
    // The killer also waits for a key of rank 0. If rank 1 died before rank 0 arrived, the store would forget
    // the whole job, including the will of rank 1.
    const std::vector<std::string> keys = {"job/rank/0", met ? "job/connects" : "job/rank/1"};
    ExchangeOptions options;
    std::thread killer([&] {
      EXPECT_TRUE(watcher->wait(keys, ample()).ok());
      kill(child, SIGKILL);
      EXPECT_EQ(waitpid(child, nullptr, 0), child);
    });
    options.connect = [&](const std::vector<PeerInfo>&) {
      EXPECT_TRUE(zero.get("done", ample()).ok());  // the will of rank 1
      return Status(Code::peer_lost, "a connection was closed");
    };
    const Status failure = exchange(zero, introduction(0, met ? 2 : 3), options, ample()).status();
    EXPECT_EQ(failure.code(), Code::peer_lost) << failure.to_string();
    EXPECT_EQ(failure.peer(), 1) << failure.to_string();
    killer.join();
    for (const std::string name : {"session", "table", "told", "done", "present", "rank/0", "rank/1"})
      EXPECT_FALSE(watcher->exists("job/" + name, ample()).take()) << name;
    std::thread second([&] { EXPECT_TRUE(exchange(one, introduction(1), {}, ample()).ok()); });
    EXPECT_TRUE(exchange(zero, introduction(0), {}, ample()).ok());
    second.join();
  }
}

}  // namespace
}  // namespace tutti::test
