// Tests collectives that a library carries out (docs/seams/offload.md), with the reference offload.

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/on_each_transport.h"
#include "tests/support/collective_case.h"
#include "tests/support/reference_offload.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;
using SharedLibrary = std::shared_ptr<ReferenceLibrary>;

SharedLibrary make_library(ReferenceOptions options = {}) {
  return std::make_shared<ReferenceLibrary>(std::move(options));
}

ClusterOptions with(const SharedLibrary& library, const std::string& transport = "inproc") {
  return {.transport = transport, .offloads = reference_offloads(library)};
}

// A failure of the communicator also ends earlier calls that a rank has not completed yet. So tests
// that provoke a failure first wait at the barrier `together` until every rank has completed the
// earlier calls.

// Returns a buffer of the elements that is marked as device memory, so that the reference offload
// accepts it.
template <class T>
Buffer on_device(std::vector<T>& elements, int device = 0) {
  Buffer buffer(elements);
  buffer.memory = Memory::cuda(device);
  return buffer;
}

// Makes the call of a case on device memory. Each rank names a different device.
void perform_there(Communicator& comm, const CollectiveCase& test, const CaseCall& call) {
  CaseCall there = call;
  there.in.memory = there.out.memory = Memory::cuda(comm.rank());
  perform(comm, test, there);
}

Status sum_there(Communicator& comm, std::vector<float>& data, const CallOptions& options = {}) {
  return outcome(comm.all_reduce(on_device(data), ReduceOp::sum, options));
}

class OffloadOfSize : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string transport() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }
};

class OffloadOfMany : public OffloadOfSize {};

TEST_P(OffloadOfSize, EveryCollectiveInDeviceMemory) {
  for (const unsigned polls : {0u, 3u}) {
    const SharedLibrary library = make_library({.polls = polls});
    Cluster ranks(size(), with(library, transport()));
    ranks.run([&](Communicator& comm) {
      for (const CollectiveCase& test : tested_matrix(size())) {
        if (test.op.kind() == ReduceOp::Kind::user || test.kind == CollectiveKind::barrier) continue;
        ASSERT_EQ(run_case(comm, test, {}, perform_there), "");
      }
    });
    EXPECT_EQ(library->sessions_opened, size());
    EXPECT_GT(library->calls, 100 * size());
  }
}

TEST_P(OffloadOfSize, OffloadedAndOrdinaryOperationsTakeTurns) {
  const SharedLibrary library = make_library();
  Cluster ranks(size(), with(library, transport()));
  ranks.run([&](Communicator& comm) {
    const int pairs = test_all() ? 5'000 : 500;
    std::vector<std::int64_t> here(1), there(1);
    for (int i = 0; i < pairs; ++i) {
      here[0] = there[0] = comm.rank() + i;
      Work offloaded = comm.all_reduce(on_device(there), ReduceOp::sum);
      Work ordinary = comm.all_reduce(here, ReduceOp::max);
      ordinary.wait();
      offloaded.wait();
      ASSERT_EQ(here[0], comm.size() - 1 + i);
      ASSERT_EQ(there[0], comm.size() * (comm.size() - 1) / 2 + comm.size() * i);
    }
  });
}

// The first call uses a function of the user. The library cannot call such a function, so it does
// not accept this call.
TEST_P(OffloadOfSize, ACallThatTheLibraryDoesNotTakeIsRefusedOnAllRanks) {
  const SharedLibrary library = make_library();
  Cluster ranks(size(), with(library, transport()));
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(3, 1);
    const Status refused = outcome(comm.all_reduce(on_device(data), last_nonzero()));
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_THAT(refused.message(), HasSubstr("reference: it cannot call a program's functions"));
    const Status named = sum_there(comm, data, {.algorithm = "ring"});
    EXPECT_EQ(named.code(), Code::unsupported) << named.to_string();
    EXPECT_TRUE(comm.status().ok());
    EXPECT_TRUE(sum_there(comm, data).ok());
    EXPECT_EQ(data[2], static_cast<float>(comm.size()));
  });
}

TEST_P(OffloadOfMany, SumAgainstMaxIsAMismatchOnAllRanks) {
  const int rounds = test_all() ? 50 : 10;
  const SharedLibrary library = make_library();
  Cluster ranks(size(), with(library, transport()));
  std::barrier together(size());
  ranks.run([&](Communicator& comm) {
    for (int round = 0; round < rounds; ++round) {
      Communicator part = std::move(*comm.split(0));
      std::vector<float> data(5, 1);
      // In every other round, the call that differs is the first call.
      for (int i = 0; i < round % 2; ++i) EXPECT_TRUE(sum_there(part, data).ok());
      together.arrive_and_wait();
      const bool odd = comm.rank() == round % size();
      const Status differs = outcome(part.all_reduce(on_device(data), odd ? ReduceOp::max : ReduceOp::sum));
      EXPECT_EQ(differs.code(), Code::mismatch) << differs.to_string();
    }
  });
  EXPECT_EQ(library->sessions, 0);
}

TEST_P(OffloadOfMany, CallsThatMakeTheLibraryHangAreAMismatchOnAllRanks) {
  const SharedLibrary library = make_library();
  Cluster ranks(size(), with(library, transport()));
  std::barrier together(size());
  ranks.run([&](Communicator& comm) {
    for (const char* what : {"count", "kind", "root", "memory"}) {
      Communicator part = std::move(*comm.split(0));
      std::vector<float> data(6, 1);
      EXPECT_TRUE(sum_there(part, data).ok());
      together.arrive_and_wait();
      const bool odd = comm.rank() == 1;
      Buffer buffer = on_device(data);
      Work work;
      if (what == std::string("count")) {
        if (odd) buffer.count = 3;
        work = part.all_reduce(buffer, ReduceOp::sum);
      } else if (what == std::string("kind")) {
        work = odd ? part.broadcast(buffer, 0) : part.all_reduce(buffer, ReduceOp::sum);
      } else if (what == std::string("root")) {
        work = part.broadcast(buffer, odd ? 1 : 0);
      } else {
        if (odd) buffer.memory = Memory();
        work = part.all_reduce(buffer, ReduceOp::sum);
      }
      const Status differs = outcome(work);
      EXPECT_EQ(differs.code(), Code::mismatch) << what << ": " << differs.to_string();
    }
  });
}

TEST_P(OffloadOfMany, SplitAndGroupOpenSessionsOfTheirOwn) {
  const SharedLibrary library = make_library({.polls = 2});
  Cluster ranks(size(), with(library, transport()));
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(4, 1);
    Communicator half = std::move(*comm.split(comm.rank() % 2));
    EXPECT_TRUE(sum_there(half, data).ok());
    EXPECT_EQ(data[3], static_cast<float>(half.size()));
    if (comm.rank() < 2) {
      Communicator pair = comm.group(std::vector<int>{1, 0});
      data.assign(4, 1);
      EXPECT_TRUE(sum_there(pair, data).ok());
      EXPECT_EQ(data[0], 2.0f);
    }
  });
  EXPECT_EQ(library->sessions, 0) << "the communicators are gone";
  EXPECT_EQ(library->sessions_opened, size() + 2);
}

TEST_P(OffloadOfMany, ACommunicatorCostsNothingUntilItsFirstOffloadedCall) {
  const SharedLibrary library = make_library();
  Cluster ranks(size(), with(library, transport()));
  ranks.run([](Communicator& comm) {
    std::vector<Communicator> many;
    for (int i = 0; i < 10; ++i) many.push_back(std::move(*comm.split(0)));
    std::vector<float> data(3, 1);
    for (Communicator& each : many) each.all_reduce(data, ReduceOp::max).wait();
  });
  EXPECT_EQ(library->sessions_opened, 0);
}

// --- who fits ---

TEST_P(OffloadOfMany, RanksThatDoNotFitAreNamedBeforeAnythingStarts) {
  const auto facts = [this](int rank) { return rank == size() - 1 ? "version 2" : "version 1"; };
  const SharedLibrary library = make_library({.facts = facts});
  Cluster ranks(size(), with(library, transport()));
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(3, 1);
    const Status refused = sum_there(comm, data);
    EXPECT_EQ(refused.code(), Code::unsupported) << refused.to_string();
    EXPECT_THAT(refused.message(), HasSubstr("reference: " + comm.describe(0) + " has version 1, " +
                                             comm.describe(size() - 1) + " has version 2"));
    EXPECT_TRUE(comm.status().ok());
    std::optional<Communicator> fitting = comm.split(comm.rank() == size() - 1 ? 1 : 0);
    EXPECT_TRUE(sum_there(*fitting, data).ok());
  });
  EXPECT_EQ(library->sessions_opened, size());
}

TEST_P(OffloadOfMany, ARankWithoutTheLibraryIsNamed) {
  const SharedLibrary library = make_library({.host_memory = true});
  ClusterOptions options = with(library, transport());
  options.offloads = [every = options.offloads](int rank) {
    return rank == 1 ? std::vector<std::unique_ptr<Offload>>() : every(rank);
  };
  Cluster ranks(size(), options);
  ranks.run([](Communicator& comm) {
    std::vector<float> data(3, 1);
    const Status refused = sum_there(comm, data);
    EXPECT_EQ(refused.code(), Code::unsupported) << refused.to_string();
    if (comm.rank() != 1) {
      EXPECT_THAT(refused.message(),
                  HasSubstr(comm.describe(0) + " has it, " + comm.describe(1) + " has not"));
    }
    EXPECT_TRUE(outcome(comm.all_reduce(data, ReduceOp::sum)).ok()) << "host memory needs no library";
    EXPECT_EQ(data[0], static_cast<float>(comm.size()));
  });
  EXPECT_EQ(library->sessions_opened, 0);
}

TEST(Offload, TheFirstThatTakesACallGetsIt) {
  const SharedLibrary device = make_library(), both = make_library({.host_memory = true});
  ClusterOptions options;
  options.offloads = [&](int rank) {
    std::vector<std::unique_ptr<Offload>> two = reference_offloads(device)(rank);
    two.push_back(std::move(reference_offloads(both)(rank).front()));
    return two;
  };
  Cluster ranks(3, options);
  ranks.run([](Communicator& comm) {
    std::vector<float> data(3, 1);
    EXPECT_TRUE(sum_there(comm, data).ok());
    comm.all_reduce(data, ReduceOp::sum).wait();
    EXPECT_EQ(data[0], 9.0f);
  });
  EXPECT_EQ(device->calls, 3);
  EXPECT_EQ(both->calls, 3);
}

// --- opening ---

TEST_P(OffloadOfMany, AnOpeningThatFailsOnOneRankFailsTheCommunicatorOnAll) {
  const auto opening = [this](OffloadPeers& peers) {
    return peers.rank() == size() - 1 ? Status(Code::resource_exhausted, "no room on the device") : Status();
  };
  const SharedLibrary library = make_library({.opening = opening});
  Cluster ranks(size(), with(library, transport()));
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(3, 1);
    const Status failed = sum_there(comm, data);
    EXPECT_EQ(failed.code(), Code::resource_exhausted) << failed.to_string();
    EXPECT_EQ(failed.peer(), size() - 1);
    EXPECT_THAT(failed.message(),
                HasSubstr(comm.describe(size() - 1) + ": reference cannot be opened: no room on the device"));
    EXPECT_EQ(comm.status().code(), Code::resource_exhausted);
  });
  EXPECT_EQ(library->sessions, 0);
}

TEST_P(OffloadOfMany, AnOpeningKnowsTheMembersAndTheirMemory) {
  const auto opening = [this](OffloadPeers& peers) {
    EXPECT_EQ(peers.memory(), Memory::cuda(5));
    EXPECT_EQ(peers.members().size(), static_cast<std::size_t>(size()));
    EXPECT_EQ(peers.members()[static_cast<std::size_t>(peers.rank())]->rank, peers.rank());
    EXPECT_LE(peers.deadline().remaining(), std::chrono::seconds(60));
    const std::array<std::byte, 2> mine = {std::byte{7}, static_cast<std::byte>(peers.rank())};
    const auto all = peers.exchange(mine);
    EXPECT_TRUE(all.ok()) << all.status().to_string();
    for (std::size_t rank = 0; all.ok() && 2 * rank < all->size(); ++rank)
      EXPECT_EQ((*all)[2 * rank + 1], static_cast<std::byte>(rank));
    return Status();
  };
  Cluster ranks(size(), with(make_library({.opening = opening}), transport()));
  ranks.run([](Communicator& comm) {
    std::vector<float> data(3, 1);
    const CallOptions soon{.timeout = std::chrono::seconds(60)};
    EXPECT_TRUE(outcome(comm.broadcast(on_device(data, 5), 0, soon)).ok());
  });
}

// The opening hangs on rank 1 before it exchanges any data with the other ranks.
TEST_P(OffloadOfMany, AnOpeningThatHangsTimesOutOnAllRanks) {
  const auto opening = [](OffloadPeers& peers) {
    while (peers.rank() == 1 && peers.status().ok())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return peers.status();
  };
  const SharedLibrary library = make_library({.opening = opening});
  ClusterOptions options = with(library, transport());
  options.timeout = std::chrono::milliseconds(300);
  Cluster ranks(size(), options);
  ranks.run([](Communicator& comm) {
    std::vector<float> data(3, 1);
    const Status late = sum_there(comm, data);
    EXPECT_EQ(late.code(), Code::timeout) << late.to_string();
    EXPECT_THAT(late.message(), testing::AnyOf(HasSubstr("reference has not completed it"),
                                               HasSubstr("still waiting for " + comm.describe(1))));
  });
}

TEST(Offload, ARankThatNeverMakesTheFirstCallIsNamed) {
  ClusterOptions options = with(make_library());
  options.timeout = std::chrono::milliseconds(300);
  Cluster ranks(3, options);
  ranks.run([](Communicator& comm) {
    if (comm.rank() == 2) return;
    std::vector<float> data(3, 1);
    const Status late = sum_there(comm, data);
    EXPECT_EQ(late.code(), Code::timeout) << late.to_string();
    EXPECT_THAT(late.message(), HasSubstr("still waiting for"));
    EXPECT_THAT(late.message(), HasSubstr(comm.describe(2)));
  });
}

TEST(Offload, TheFirstCallCannotBeMadeInsideACallback) {
  Cluster ranks(2, with(make_library()));
  ranks.run([](Communicator& comm) {
    std::vector<float> data(3, 1), own(1);
    std::atomic<int> code{-1};
    Work arrived = comm.recv(own, comm.rank(), 1);
    arrived.then([&](const Status&) { code = static_cast<int>(sum_there(comm, data).code()); });
    comm.send(std::vector<float>{2}, comm.rank(), 1).wait();
    while (code < 0) comm.progress();
    EXPECT_EQ(code, static_cast<int>(Code::invalid_argument));
    EXPECT_TRUE(sum_there(comm, data).ok());
    // The call above has opened the session, so a callback may make calls that the library carries out.
    Work work, again = comm.recv(own, comm.rank(), 1);
    std::atomic<bool> issued{false};
    again.then([&](const Status&) {
      work = comm.all_reduce(on_device(data), ReduceOp::sum);
      issued = true;
    });
    comm.send(std::vector<float>{2}, comm.rank(), 1).wait();
    while (!issued) comm.progress();
    work.wait();
    EXPECT_EQ(data[0], 4.0f);
  });
}

std::string name_of_offload_world(const testing::TestParamInfo<std::tuple<std::string, int>>& parameter) {
  return std::get<0>(parameter.param) + "_" + std::to_string(std::get<1>(parameter.param));
}

INSTANTIATE_TEST_SUITE_P(All, OffloadOfSize,
                         testing::Combine(testing::Values("inproc", "shared"),
                                          testing::Values(1, 2, 3, 4, 7, 8)),
                         name_of_offload_world);
INSTANTIATE_TEST_SUITE_P(All, OffloadOfMany,
                         testing::Combine(testing::Values("inproc", "shared", "late"),
                                          testing::Values(2, 3, 4, 7, 8)),
                         name_of_offload_world);

}  // namespace
}  // namespace tutti::test
