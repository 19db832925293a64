// Tests collectives over one and over several rails: their results, what they ask of the cards, and how they
// end if a queue pair breaks. These tests also run over Soft-RoCE.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cluster.h"
#include "tests/support/collective_case.h"
#include "tests/verbs/watched_library.h"
#include "transport/verbs/factory.h"

namespace tutti::test {
namespace {

// The library is never destroyed, since the thread of a world that is ending may outlive the test.
WatchedLibrary& library() {
  static WatchedLibrary& made = *new WatchedLibrary;
  return made;
}

// With one rail, neighbouring ranks use different devices, as they would on different hosts. With two rails,
// all ranks use both devices.
ClusterOptions with_rails(int rails) {
  ClusterOptions options;
  options.decorate = [rails](int rank, std::unique_ptr<Transport>) {
    verbs::Options how;
    how.functions = &library().functions();
    how.settings.devices = rails == 1 ? "=rxe" + std::to_string(rank % 2) : "=rxe0,rxe1";
    how.most_checks = 1000;  // the ranks may share two emulated processors
    return verbs::create(how).take();
  };
  return options;
}

// After a world, everything that it has made is gone. (The thread of a world may end a moment later.)
void expect_nothing_is_left() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (library().usage().pairs > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(library().usage().pairs, 0);
  EXPECT_EQ(library().usage().regions, 0);
}

// `VerbsCollectives` has worlds of ranks that are connected by that many rails.
class VerbsCollectives : public testing::TestWithParam<std::pair<int, int>> {
 protected:
  int size() const { return GetParam().first; }
  int rails() const { return GetParam().second; }
  void start() {
    ranks_ = std::make_unique<Cluster>(size(), with_rails(rails()));
    ranks_->run([](Communicator& comm) {  // connects all ranks
      std::vector<int> data(static_cast<std::size_t>(comm.size()));
      for (int i = 0; i < 20; ++i) comm.all_to_all(data).wait();
    });
    // The ranks connect the second rail meanwhile.
    while (rails() > 1 && !all_rails_write()) exchange(1 << 20);
  }
  // Each rank sends a large message to each other rank.
  void exchange(std::size_t bytes) {
    ranks_->run([bytes](Communicator& comm) {
      std::vector<std::byte> blocks(bytes * static_cast<std::size_t>(comm.size()), std::byte{1});
      comm.all_to_all(blocks).wait();
    });
  }
  bool all_rails_write() const { return library().usage().writers == size() * (size() - 1) * rails(); }
  void TearDown() override {
    ranks_.reset();
    expect_nothing_is_left();
  }

  std::unique_ptr<Cluster> ranks_;
};

TEST_P(VerbsCollectives, AllKinds) {
  start();
  ranks_->run([](Communicator& comm) {
    for (int k = 0; k < collective_kind_count; ++k) {
      for (const std::uint64_t count : {1, 500, 70'001}) {
        CollectiveCase test;
        test.kind = static_cast<CollectiveKind>(k);
        if (test.kind == CollectiveKind::send || test.kind == CollectiveKind::recv) continue;
        test.count = count;
        test.root = k % comm.size();
        ASSERT_EQ(run_case(comm, test), "");
      }
    }
  });
}

// In so small a world, a small all_reduce is one step: each rank sends a message to each other rank.
TEST_P(VerbsCollectives, SmallOnesPostOneInlineSendAMessage) {
  start();
  constexpr std::uint64_t calls = 50;
  const Usage before = library().usage();
  ranks_->run([](Communicator& comm) {
    for (std::uint64_t i = 0; i < calls; ++i) {
      std::int64_t value = comm.rank();
      comm.all_reduce(std::span(&value, 1), ReduceOp::sum).wait();
      ASSERT_EQ(value, comm.size() * (comm.size() - 1) / 2);
    }
  });
  const Usage after = library().usage();
  const auto ranks = static_cast<std::uint64_t>(size());
  const std::uint64_t messages = calls * ranks * (ranks - 1);
  EXPECT_EQ(after.messages - before.messages, messages);
  EXPECT_EQ(after.inlined - before.inlined, after.packets - before.packets);
  // A few packets may have returned credit.
  EXPECT_LE(after.packets - before.packets, messages * 5 / 4);
  EXPECT_EQ(after.registrations, before.registrations);
  EXPECT_EQ(after.written, before.written);
}

TEST_P(VerbsCollectives, LargeOnesRegisterAndCopyNothing) {
  start();
  constexpr std::size_t elements = (16 << 20) / sizeof(float);
  std::vector<std::vector<float>> data(static_cast<std::size_t>(size()), std::vector<float>(elements, 1));
  std::vector<Registration> registrations(data.size());
  const auto reduce = [&](Communicator& comm) {
    comm.all_reduce(data[static_cast<std::size_t>(comm.rank())], ReduceOp::sum).wait();
  };
  ranks_->run([&](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    const auto memory = std::as_writable_bytes(std::span(data[rank]));
    library().expect_from(memory);
    registrations[rank] = comm.register_memory(memory);
  });
  ranks_->run(reduce);  // registers the staging chunks of each connection
  const Usage before = library().usage();
  const std::uint64_t in_place = ranks_->communicator(0).statistics().bytes_in_place;
  ranks_->run(reduce);
  const Usage after = library().usage();
  EXPECT_EQ(after.registrations, before.registrations);
  EXPECT_EQ(after.elsewhere, before.elsewhere);
  EXPECT_GE(after.in_place - before.in_place, size() * elements * sizeof(float));
  EXPECT_GE(ranks_->communicator(0).statistics().bytes_in_place - in_place, elements * sizeof(float) / 2);
  const auto sum = static_cast<float>(size() * size());
  for (const std::vector<float>& each : data)
    EXPECT_TRUE(std::ranges::all_of(each, [&](float value) { return value == sum; }));
  registrations.clear();
}

INSTANTIATE_TEST_SUITE_P(Rails, VerbsCollectives,
                         testing::Values(std::pair(2, 1), std::pair(2, 2), std::pair(4, 2)),
                         [](const auto& parameter) {
                           return "Ranks" + std::to_string(parameter.param.first) + "Rails" +
                                  std::to_string(parameter.param.second);
                         });

// Returns how this rank's collectives end. Counts those that have succeeded.
Status end_of_collectives(Communicator& comm, std::atomic<int>& succeeded) {
  std::vector<float> data(50'000);
  try {
    for (;; ++succeeded) comm.all_reduce(data, ReduceOp::sum).wait();
  } catch (const Error& error) {
    return error.status();
  }
}

// A queue pair breaks in the middle of a collective. Both of its ranks are alive, so the control plane gives
// up one of them.
TEST(VerbsBrokenPair, EndsTheCollectivesOfAllRanks) {
  const int rounds = std::getenv("TEST_ALL") != nullptr ? 20 : 2;
  std::minstd_rand random(17);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ClusterOptions options = with_rails(1);
    options.control = true;
    auto ranks = std::make_unique<Cluster>(3, options);
    std::atomic<int> succeeded = 0;
    std::atomic<bool> broken = false;
    const int moment = 3 + static_cast<int>(random() % 30);
    std::thread harm([&] {
      const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
      while (succeeded < moment && std::chrono::steady_clock::now() < limit)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      broken = library().break_pair(random());
    });
    std::vector<Status> ends(3);
    ranks->run([&](Communicator& comm) {
      ends[static_cast<std::size_t>(comm.rank())] = end_of_collectives(comm, succeeded);
    });
    harm.join();
    EXPECT_TRUE(broken);
    int given_up = 0;
    for (const Status& status : ends) {
      if (status.message().find("was given up") != std::string::npos && ++given_up == 1) continue;
      EXPECT_EQ(status.code(), Code::peer_lost) << status.to_string();
    }
    ranks.reset();
    expect_nothing_is_left();
  }
}

}  // namespace
}  // namespace tutti::test
