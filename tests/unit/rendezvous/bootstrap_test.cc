// Tests how ranks learn each other's addresses after their launch, over real sockets and files.
#include "rendezvous/meeting/bootstrap.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tutti/log.h>
#include <tutti/store_server.h>

#include "core/random.h"
#include "rendezvous/meeting/session_file.h"
#include "rendezvous/store/tcp/store_client.h"
#include "tests/support/scratch_folder.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::ScratchFolder;
using Outcome = Result<Joined>;

Deadline ample() { return Deadline::after(seconds(60)); }

std::uint16_t free_port() { return tcp::StoreServer::create({}).take()->port(); }

Launch launch_of(int rank, int world_size, const StoreLocation& store) {
  Launch launch;
  launch.rank = rank;
  launch.world_size = world_size;
  launch.store = store;
  return launch;
}

StoreLocation tcp_at(const std::string& host, std::uint16_t port, bool served = false) {
  return {StoreLocation::Kind::tcp, host, port, served, {}};
}

StoreLocation file_at(const std::string& path) { return {StoreLocation::Kind::file, {}, 0, false, path}; }

bool has_session(const StoreLocation& store) {
  file::SessionFile file(store.path);
  return read_session(file, Deadline::never()).ok();
}

Outcome join_as(int rank, int world_size, const StoreLocation& store, Deadline deadline = ample()) {
  JoinOptions options;
  options.wire_digest = "TUTTI_SHM_WINDOW=1M;";
  options.version = "1";
  options.addresses = [rank](const Session&) {
    return std::map<std::string, std::string>{{"tcp", "address of " + std::to_string(rank)}};
  };
  return join(launch_of(rank, world_size, store), options, deadline);
}

std::vector<Outcome> join_all(int world_size, const StoreLocation& store, Deadline deadline = ample()) {
  std::vector<Outcome> outcomes;
  for (int i = 0; i < world_size; ++i) outcomes.push_back(Status(Code::internal, "not run"));
  std::vector<std::thread> threads;
  // The highest rank starts first and has to wait.
  for (int rank = world_size - 1; rank >= 0; --rank) {
    threads.emplace_back(
        [&, rank] { outcomes[static_cast<std::size_t>(rank)] = join_as(rank, world_size, store, deadline); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

void expect_complete(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
    ASSERT_EQ(outcome->peers.size(), outcomes.size());
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      EXPECT_EQ(outcome->peers[i].addresses.at("tcp"), "address of " + std::to_string(i));
      EXPECT_EQ(outcome->peers[i].pid, getpid());
    }
  }
}

#define EXPECT_SAYS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

class JoinWorlds : public testing::TestWithParam<int> {};

TEST_P(JoinWorlds, OverTcpServedByRankZero) {
  expect_complete(join_all(GetParam(), tcp_at("127.0.0.1", free_port())));
}

TEST_P(JoinWorlds, OverTcpServedBySomebody) {
  const auto server = tcp::StoreServer::create({}).take();
  const StoreLocation store = tcp_at("127.0.0.1", server->port(), true);
  expect_complete(join_all(GetParam(), store));
  expect_complete(join_all(GetParam(), store));
}

TEST_P(JoinWorlds, OverAFileTwice) {
  const ScratchFolder folder;
  for (int round = 0; round < 2; ++round) {
    std::vector<Outcome> outcomes = join_all(GetParam(), file_at(folder / "session"));
    expect_complete(outcomes);
    outcomes.clear();
    EXPECT_EQ(folder.entries(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, JoinWorlds, testing::Values(1, 2, 3, 7, 16));

// Starts all ranks at once. Rank `broken` cannot listen. Checks that the other ranks learn the
// number of that rank, and the reason.
void expect_told(int broken, const StoreLocation& store) {
  constexpr int world_size = 3;
  std::vector<Status> outcomes(world_size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      JoinOptions options;
      options.addresses = [&, rank](const Session&) -> Result<std::map<std::string, std::string>> {
        if (rank == broken) return Status(Code::resource_exhausted, "no port is free");
        return std::map<std::string, std::string>{};
      };
      outcomes[static_cast<std::size_t>(rank)] =
          join(launch_of(rank, world_size, store), options, ample()).status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < world_size; ++rank) {
    const Status& status = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(status.code(), Code::resource_exhausted) << rank << ": " << status.to_string();
    EXPECT_SAYS(status.message(), "no port is free");
    if (rank == broken) continue;
    EXPECT_SAYS(status.message(), "rank " + std::to_string(broken) + " (host ");
  }
}

TEST(Join, ARankThatCannotComeTellsTheOthers) {
  const auto server = tcp::StoreServer::create({}).take();
  for (const int broken : {0, 2}) {
    expect_told(broken, tcp_at("127.0.0.1", free_port()));
    const ScratchFolder folder;
    expect_told(broken, file_at(folder / "session"));
    expect_told(broken, tcp_at("127.0.0.1", server->port(), true));
  }
  expect_complete(join_all(3, tcp_at("127.0.0.1", server->port(), true)));
}

TEST(Join, AloneNeedsNoPlace) {
  const Joined joined = join_as(0, 1, {}).take();
  EXPECT_EQ(joined.peers.size(), 1u);
  EXPECT_SAYS(join_as(0, 2, {}).status().message(), "needs a place to meet");
}

TEST(Join, ByNamesOfThisHost) {
  expect_complete(join_all(2, tcp_at("localhost", free_port())));
  expect_complete(join_all(2, tcp_at("[::1]", free_port())));
  // This host's name may resolve to 127.0.1.1.
  expect_complete(join_all(2, tcp_at(describe_this_process().host, free_port())));
}

TEST(Join, AHostNameThatMeansLoopbackSaysNothingOfTheRoute) {
  const std::vector<Outcome> local = join_all(2, tcp_at("127.0.0.1", free_port()));
  for (const Outcome& outcome : local) {
    ASSERT_TRUE(outcome.ok());
    ASSERT_TRUE(outcome->session.route.has_value());
    EXPECT_TRUE(outcome->session.route->is_loopback());
  }
  const std::string name = describe_this_process().host;
  for (const Outcome& outcome : join_all(2, tcp_at(name, free_port()))) {
    ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
    EXPECT_FALSE(outcome->session.route && outcome->session.route->is_loopback());
  }
}

TEST(Join, TheFirstSessionStillHeldDoesNotDisturbTheNextOnAFile) {
  const ScratchFolder folder;
  const StoreLocation store = file_at(folder / "session");
  const std::vector<Outcome> first = join_all(2, store);
  expect_complete(first);
  // Rank 1 of the next run starts first, and finds the file of the old session. Rank 0 of the old session
  // still serves its store.
  Outcome one = Status(Code::internal, "not run");
  std::thread early([&] { one = join_as(1, 2, store); });
  std::this_thread::sleep_for(milliseconds(100));
  const Outcome zero = join_as(0, 2, store);
  early.join();
  ASSERT_TRUE(zero.ok()) << zero.status().to_string();
  ASSERT_TRUE(one.ok()) << one.status().to_string();
  EXPECT_EQ(one->peers[0].rank, 0);
}

TEST(Join, AfterACrashedRunOnTheSameFile) {
  const ScratchFolder folder;
  const StoreLocation store = file_at(folder / "session");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Outcome never = join_as(0, 2, store);
    _exit(never.ok() ? 0 : 1);
  }
  for (int i = 0; i < 3000 && !has_session(store); ++i) std::this_thread::sleep_for(milliseconds(10));
  ASSERT_TRUE(has_session(store));
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(has_session(store));  // the file still exists, but its store does not
  expect_complete(join_all(3, store));
}

void write_private(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
  chmod(path.c_str(), 0600);
}

TEST(Join, OverAFileWithGarbage) {
  const ScratchFolder folder;
  const StoreLocation store = file_at(folder / "session");
  for (const std::string& garbage : {std::string("tutti-session 1\ngarbage\n"),
                                     "tutti-session " + std::string(100'000, 'x'), std::string()}) {
    write_private(store.path, garbage);
    expect_complete(join_all(2, store));
  }
  // This session file names a store that belongs to another session.
  const auto other = tcp::StoreServer::create({}).take();
  const SessionText session{random_hex(16), random_secret(32), boot_id(), {{"127.0.0.1", other->port()}}};
  write_private(store.path, std::string(format_session(session).reveal()));
  expect_complete(join_all(2, store));
}

TEST(Join, OverSomebodysDataIsRefusedAtOnce) {
  const ScratchFolder folder;
  const StoreLocation store = file_at(folder / "data");
  write_private(store.path, "weeks of work");
  for (const Outcome& outcome : join_all(3, store)) {
    EXPECT_EQ(outcome.status().code(), Code::invalid_argument) << outcome.status().to_string();
    EXPECT_SAYS(outcome.status().message(), "it does not hold a session");
  }
  std::string left;
  std::getline(std::ifstream(store.path), left);
  EXPECT_EQ(left, "weeks of work");
}

// An attacker imitates rank 0 and serves a store. The attacker then puts the session file of that
// store in the place where rank 1 looks for the file of its own job.
TEST(Join, ASessionOfSomebodyElseLeadsNowhere) {
  const ScratchFolder folder;
  const StoreLocation theirs = file_at(folder / "theirs"), ours = file_at(folder / "ours");
  Outcome attacker = Status(Code::internal, "not run");
  std::thread serving([&] { attacker = join_as(0, 2, theirs); });
  for (int i = 0; i < 3000 && !has_session(theirs); ++i) std::this_thread::sleep_for(milliseconds(10));
  const auto expect_refused = [&](const char* why) {
    const Status status = join_as(1, 2, ours).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << status.to_string();
    EXPECT_SAYS(status.message(), why);
    unlink(ours.path.c_str());
  };
  ASSERT_EQ(symlink(theirs.path.c_str(), ours.path.c_str()), 0);
  expect_refused("symbolic link");
  std::filesystem::copy_file(theirs.path, ours.path);
  ASSERT_EQ(chmod(ours.path.c_str(), 0666), 0);
  expect_refused("its mode is 0666");
  if (geteuid() == 0) {
    std::filesystem::copy_file(theirs.path, ours.path);
    ASSERT_EQ(chown(ours.path.c_str(), 4711, 4711), 0);
    expect_refused("uid 4711");
  }
  const Outcome member = join_as(1, 2, theirs);
  serving.join();
  EXPECT_TRUE(member.ok()) << member.status().to_string();
  EXPECT_TRUE(attacker.ok()) << attacker.status().to_string();
}

TEST(Join, AVanishedSessionFileComesBack) {
  const ScratchFolder folder;
  const StoreLocation store = file_at(folder / "session");
  Outcome zero = Status(Code::internal, "not run");
  std::thread first([&] { zero = join_as(0, 2, store); });
  for (int i = 0; i < 3000 && !has_session(store); ++i) std::this_thread::sleep_for(milliseconds(10));
  unlink(store.path.c_str());
  const Outcome one = join_as(1, 2, store);
  first.join();
  EXPECT_TRUE(zero.ok()) << zero.status().to_string();
  EXPECT_TRUE(one.ok()) << one.status().to_string();
}

TEST(Join, FileErrorsAreClear) {
  const ScratchFolder folder;
  for (const int rank : {0, 1}) {
    const Status missing = join_as(rank, 2, file_at(folder / "no/session")).status();
    EXPECT_EQ(missing.code(), Code::invalid_argument);
    EXPECT_SAYS(missing.message(), "does not exist");
    const Status is_folder = join_as(rank, 2, file_at(folder.path())).status();
    EXPECT_EQ(is_folder.code(), Code::invalid_argument);
    EXPECT_SAYS(is_folder.message(), "is a folder");
  }
  const Status alone = join_as(1, 2, file_at(folder / "session"), Deadline::after(seconds(1))).status();
  EXPECT_EQ(alone.code(), Code::unreachable);
  EXPECT_SAYS(alone.message(), "is rank 0 running?");
}

TEST(Join, TcpErrorsAreClear) {
  const Status unresolvable =
      join_as(1, 2, tcp_at("no-such-host.invalid", 29500), Deadline::after(milliseconds(500))).status();
  EXPECT_SAYS(unresolvable.message(), "cannot resolve host name 'no-such-host.invalid'");
  EXPECT_SAYS(join_as(0, 2, tcp_at("no-such-host.invalid", 29500), Deadline::after(milliseconds(500)))
                  .status()
                  .message(),
              "cannot resolve");
  const auto other = tcp::StoreServer::create({}).take();
  const Status in_use = join_as(0, 2, tcp_at("127.0.0.1", other->port())).status();
  EXPECT_SAYS(in_use.message(), "port " + std::to_string(other->port()) + " on 127.0.0.1 is in use");
  const std::uint16_t port = free_port();
  const Status alone = join_as(1, 2, tcp_at("127.0.0.1", port), Deadline::after(seconds(1))).status();
  EXPECT_EQ(alone.code(), Code::unreachable);
  EXPECT_SAYS(alone.message(), "rank 1 waited for rank 0");
  const Status missing = join_as(0, 2, tcp_at("127.0.0.1", port), Deadline::after(seconds(4))).status();
  EXPECT_EQ(missing.code(), Code::timeout);
  EXPECT_SAYS(missing.message(), "rank 1 has not arrived");
  EXPECT_SAYS(missing.message(), " at tcp://127.0.0.1:" + std::to_string(port) + " (as seen by rank 0");
}

TEST(Join, DifferentWorldSizesAreToldToBoth) {
  const StoreLocation store = tcp_at("127.0.0.1", free_port());
  Outcome two = Status(Code::internal, "not run");
  std::thread other([&] { two = join_as(2, 3, store); });
  const Outcome zero = join_as(0, 2, store);
  other.join();
  for (const Outcome* outcome : std::vector<const Outcome*>{&zero, &two}) {
    EXPECT_EQ(outcome->status().code(), Code::mismatch) << outcome->status().to_string();
    EXPECT_SAYS(outcome->status().message(), "world size");
    EXPECT_SAYS(outcome->status().message(), "rank 2");
  }
}

TEST(Join, TheDeathOfRankZeroIsToldAtOnce) {
  const StoreLocation store = tcp_at("127.0.0.1", free_port());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(join_as(0, 3, store).ok() ? 0 : 1);
  Outcome one = Status(Code::internal, "not run");
  std::thread first([&] { one = join_as(1, 3, store); });
  const std::string arrived = "tutti/rank/1";
  EXPECT_TRUE(tcp::connect_store(store.host, store.port, ample()).take()->wait({&arrived, 1}, ample()).ok());
  const auto killed = Deadline::Clock::now();
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  first.join();
  EXPECT_LT(Deadline::Clock::now() - killed, seconds(20));  // the deadline was a minute away
  EXPECT_EQ(one.status().code(), Code::peer_lost) << one.status().to_string();
  EXPECT_EQ(one.status().peer(), 0);
  EXPECT_SAYS(one.status().message(), "pid " + std::to_string(child));
}

// Interrupts rank 1 of two ranks before it has found rank 0, and returns the status of rank 1.
Status interrupted_at(const StoreLocation& store) {
  JoinOptions options;
  options.session.interrupted = [] { return true; };
  return join(launch_of(1, 2, store), options, Deadline::after(seconds(20))).status();
}

TEST(Join, WhoIsInterruptedLooksForNobody) {
  const ScratchFolder folder;
  for (const StoreLocation& store : {tcp_at("127.0.0.1", free_port()), file_at(folder / "session")}) {
    const Status status = interrupted_at(store);
    EXPECT_EQ(status.code(), Code::aborted) << status.to_string();
    EXPECT_SAYS(status.message(), "interrupted while it looked for ");
  }
}

// Both ranks have already met, and rank 1 joins again. If rank 1 were not interrupted, it would
// retry until rank 0 also joined again.
TEST(Join, WhoIsInterruptedDoesNotTryAgain) {
  const StoreLocation store = tcp_at("127.0.0.1", free_port());
  const std::vector<Outcome> met = join_all(2, store);
  expect_complete(met);
  const Status late = interrupted_at(store);
  EXPECT_EQ(late.code(), Code::aborted) << late.to_string();
  EXPECT_EQ(late.peer(), 1);
}

// Rank 0 stops its store as soon as the other ranks no longer need the store. So its port can be
// used again.
TEST(Join, AgainAndAgainOnOnePort) {
  const StoreLocation store = tcp_at("127.0.0.1", free_port());
  std::vector<std::thread> threads;
  std::vector<int> completed(4, 0);
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      for (int round = 0; round < 5; ++round) {
        const Outcome outcome = join_as(rank, 4, store);
        ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
        ++completed[static_cast<std::size_t>(rank)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int rounds : completed) EXPECT_EQ(rounds, 5);
}

}  // namespace
}  // namespace tutti
