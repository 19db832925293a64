// Tests Communicator::allocate and collectives on its memory. The collectives work directly on the buffers if
// the buffers of all ranks are registered. Otherwise they work on copies.

#include "collectives/schedule/registered.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "collectives/run/allocation.h"
#include "tests/support/cluster.h"
#include "tests/support/collective_case.h"

namespace tutti::test {
namespace {

using Kind = CollectiveKind;

constexpr Kind kinds[] = {Kind::all_reduce,     Kind::reduce, Kind::broadcast, Kind::all_gather,
                          Kind::reduce_scatter, Kind::gather, Kind::scatter};
// At this count, a vector is large enough for the ranks to vote on whether their buffers are
// registered.
constexpr std::uint64_t count = 33'001;

// `Parts` is an allocation with one half for input and the other half for output. Each half has
// room for a block of every rank. The size of the allocation differs between ranks. On each
// rank, the input begins at a different offset, which is an odd number of elements. The output follows.
class Parts {
 public:
  Parts(Communicator& comm, std::size_t element)
      : half_((static_cast<std::size_t>(comm.size()) * count + 100) * element),
        skip_(static_cast<std::size_t>(2 * comm.rank() + 1) * element),
        memory_(comm.allocate(2 * half_ + skip_ + static_cast<std::size_t>(comm.rank()) * 5000)) {}
  CaseMemory all() const {
    const auto bytes = memory_.as<std::byte>().subspan(skip_);
    return {bytes.first(half_), bytes.subspan(half_, half_)};
  }

 private:
  std::size_t half_;
  std::size_t skip_;
  Allocation memory_;
};

std::vector<CollectiveCase> cases(int size) {
  std::vector<CollectiveCase> all;
  for (const Kind kind : kinds) {
    for (const bool in_place : {false, true}) {
      if (in_place && !has_in_place(kind)) continue;
      for (const ReduceOp& op : {ReduceOp(ReduceOp::sum), last_nonzero()}) {
        if (!is_reduction(kind) && !op.commutative()) continue;
        CollectiveCase test;
        test.kind = kind;
        test.type = DataType::int32;
        test.op = op;
        test.count = count;
        test.root = static_cast<int>(all.size()) % size;
        test.in_place = in_place;
        all.push_back(test);
      }
    }
  }
  return all;
}

// Runs a case on this rank. If `in_place` is true, the case must work on registered memory
// directly. Otherwise it must copy.
void run(Communicator& comm, const CollectiveCase& test, const CaseMemory& memory, bool in_place) {
  const std::uint64_t before = comm.statistics().registered_operations;
  const std::string wrong = run_case(comm, test, memory);
  ASSERT_EQ(wrong, "");
  EXPECT_EQ(comm.statistics().registered_operations, before + (in_place ? 1 : 0))
      << test.describe() << " on rank " << comm.rank() << " of " << comm.size();
}

class Registered : public testing::TestWithParam<int> {
 protected:
  int size() const { return GetParam(); }
  void on_each(const std::function<void(Communicator&)>& body) {
    Cluster ranks(size(), {.transport = "shared"});
    ranks.run(body);
  }
};

TEST_P(Registered, EveryKindInPlace) {
  on_each([this](Communicator& comm) {
    const Parts parts(comm, sizeof(std::int32_t));
    for (const CollectiveCase& test : cases(size())) run(comm, test, parts.all(), true);
  });
}

TEST_P(Registered, BytesAtOddAddresses) {
  on_each([this](Communicator& comm) {
    const Allocation memory = comm.allocate(2'000'000 * static_cast<std::size_t>(size()));
    const auto bytes = memory.as<std::byte>().subspan(1 + 2 * static_cast<std::size_t>(comm.rank()));
    for (CollectiveCase test : cases(size())) {
      test.type = DataType::uint8;
      test.count = 4 * count + 3;
      run(comm, test, {bytes.first(bytes.size() / 2), bytes.last(bytes.size() / 2)}, true);
    }
  });
}

// Each rank in turn has one buffer in ordinary memory. If other ranks need that buffer, all ranks
// must notice that it is not registered.
TEST_P(Registered, OneRankIsNot) {
  on_each([this](Communicator& comm) {
    const Parts parts(comm, sizeof(std::int32_t));
    int turn = 0;
    for (const CollectiveCase& test : cases(size())) {
      const int stranger = ++turn % size();
      for (const bool lacks_input : {false, true}) {
        if (test.in_place && lacks_input) continue;
        CaseMemory memory = parts.all();
        if (comm.rank() == stranger) (lacks_input ? memory.input : memory.output) = {};
        if (comm.rank() == stranger && test.in_place) memory = {};
        const Reach needed = reach(test.kind, test.root, stranger);
        const bool no_input = lacks_input || test.in_place || test.kind == Kind::broadcast;
        const bool no_output = !lacks_input || test.in_place;
        run(comm, test, memory, !(needed.input && no_input) && !(needed.output && no_output));
      }
    }
  });
}

TEST_P(Registered, SomeInPlaceAndSomeNot) {
  on_each([](Communicator& comm) {
    const Parts parts(comm, sizeof(std::int32_t));
    CollectiveCase test;
    test.type = DataType::int32;
    test.count = count;
    test.in_place = comm.rank() % 2 == 0;
    run(comm, test, parts.all(), true);
  });
}

TEST_P(Registered, NotForAveragesScaledSumsSmallVectorsAndNamedAlgorithms) {
  on_each([](Communicator& comm) {
    const Parts parts(comm, sizeof(std::int32_t));
    CollectiveCase test;
    test.type = DataType::int32;
    test.count = count;
    test.op = ReduceOp::premultiplied_sum(2);
    run(comm, test, parts.all(), false);
    test.op = ReduceOp::sum;
    test.algorithm = "shared_slices";
    run(comm, test, parts.all(), false);
    test.algorithm = "ring";
    run(comm, test, parts.all(), false);
    test.algorithm = {};
    test.type = DataType::float32;
    test.op = ReduceOp::avg;
    run(comm, test, parts.all(), false);
    test.op = ReduceOp::sum;
    test.count = 1000;
    run(comm, test, parts.all(), false);
    test.count = count;
    run(comm, test, parts.all(), true);
  });
}

TEST_P(Registered, ManyInFlight) {
  on_each([](Communicator& comm) {
    constexpr std::size_t operations = 12;
    const Allocation memory = comm.allocate(operations * count * sizeof(std::int64_t));
    std::vector<Work> works;
    std::vector<std::int64_t> elsewhere(count, 1);
    for (std::size_t i = 0; i < operations; ++i) {
      const auto part = memory.as<std::int64_t>().subspan(i * count, count);
      std::fill(part.begin(), part.end(), static_cast<std::int64_t>(i) + comm.rank());
      works.push_back(i % 3 == 2 ? comm.broadcast(Buffer(part), static_cast<int>(i) % comm.size())
                                 : comm.all_reduce(Buffer(part), ReduceOp::sum));
      if (i == 5) works.push_back(comm.all_reduce(elsewhere, ReduceOp::sum));
    }
    for (Work& work : works) work.wait();
    const std::int64_t ranks_sum = comm.size() * (comm.size() - 1) / 2;
    for (std::size_t i = 0; i < operations; ++i) {
      const auto n = static_cast<std::int64_t>(i);
      const std::int64_t expected = i % 3 == 2 ? n + n % comm.size() : n * comm.size() + ranks_sum;
      for (const std::int64_t value : memory.as<std::int64_t>().subspan(i * count, count)) {
        ASSERT_EQ(value, expected) << "operation " << i;
      }
    }
    EXPECT_EQ(elsewhere.back(), comm.size());
    EXPECT_EQ(comm.statistics().registered_operations, operations);
  });
}

// Several allocations exist at the same time. Ranks free them in different orders, some ranks much earlier
// than others.
TEST_P(Registered, SeveralAndFreedByAndBy) {
  on_each([](Communicator& comm) {
    CollectiveCase test;
    test.type = DataType::int32;
    test.count = count;
    std::vector<std::unique_ptr<Parts>> live;
    for (int i = 0; i < 8; ++i) {
      live.push_back(std::make_unique<Parts>(comm, sizeof(std::int32_t)));
      run(comm, test, live.front()->all(), true);
      // The input is in one allocation, and the output in another.
      run(comm, test, {live.front()->all().input, live.back()->all().output}, true);
      if (comm.rank() % 2 == 0 && live.size() > 2) live.erase(live.begin() + 1);
    }
    // The first allocation of rank 0 now differs from the first allocation of the other ranks. This
    // is allowed, because all allocations belong to the same communicator.
    if (comm.rank() == 0) live.erase(live.begin());
    run(comm, test, live.front()->all(), true);
    if (comm.rank() == 0) live.clear();
    run(comm, test, live.empty() ? CaseMemory{} : live.front()->all(), false);
  });
}

TEST_P(Registered, OutlivesTheHandle) {
  on_each([](Communicator& comm) {
    Allocation memory = comm.allocate(100'000);
    EXPECT_EQ(memory.bytes(), 100'000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 4096, 0u);
    for (const std::byte byte : memory.as<std::byte>()) ASSERT_EQ(byte, std::byte{0});
    Allocation moved = std::move(memory);
    EXPECT_EQ(memory.data(), nullptr);  // NOLINT(bugprone-use-after-move)
    Allocation nothing = comm.allocate(0);
    EXPECT_EQ(nothing.bytes(), 0u);
    comm = Communicator();
    std::memset(moved.data(), 7, moved.bytes());
    EXPECT_EQ(moved.as<std::byte>().back(), std::byte{7});
    moved = std::move(nothing);
  });
}

// Waits until the condition holds, but for a minute at most.
void wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < 60'000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// `Slowness` describes an operation in which one rank is slow. It holds the number of other ranks on which
// the operation has failed, and whether the operation has ended on the slow rank.
struct Slowness {
  const int others;
  std::atomic<int> failed{0};
  std::atomic<bool> over{false};
};

// Adds two operands. The slow rank has a `state`, and first waits until the operation has failed on
// all other ranks. Those ranks may then write to their buffers while this function reads the same
// buffers. That race is harmless, because the result is thrown away. The thread sanitizer sees the
// race only because the ranks are threads of one process.
__attribute__((no_sanitize("thread"))) void add_slowly(const void* left, const void* right, void* out,
                                                       std::size_t elements, DataType, void* state) {
  if (const auto* const slow = static_cast<const Slowness*>(state))
    wait_until([&] { return slow->failed == slow->others; });
  for (std::size_t i = 0; i < elements; ++i) {
    static_cast<std::int32_t*>(out)[i] =
        static_cast<const std::int32_t*>(left)[i] + static_cast<const std::int32_t*>(right)[i];
  }
}

// An operation has failed on all ranks except a slow one, which still executes the operation. The slow rank
// must not write to the buffers of the other ranks, since those ranks may already use their buffers again.
TEST_P(Registered, WhatHasFailedIsNotWrittenToAnyMore) {
  Slowness slow{size() - 1};
  on_each([&slow](Communicator& comm) {
    constexpr std::size_t elements = 100'000;
    const Allocation memory = comm.allocate(elements * sizeof(std::int32_t));
    const auto data = memory.as<std::int32_t>();
    std::ranges::fill(data, 1);
    const bool late = comm.rank() == comm.size() - 1;
    const ReduceOp op = ReduceOp::user("add_slowly", add_slowly, true, late ? &slow : nullptr);
    CallOptions options;
    if (comm.rank() == 0) options.timeout = std::chrono::milliseconds(200);
    EXPECT_THROW(comm.all_reduce(data, op, options).wait(), Error);
    if (late) {
      comm = Communicator();  // returns only after the operation has ended
      slow.over = true;
      return;
    }
    std::ranges::fill(data, 7);
    ++slow.failed;
    wait_until([&] { return slow.over.load(); });
    EXPECT_TRUE(slow.over);
    EXPECT_EQ(std::ranges::count(data, 7), std::ptrdiff_t{elements}) << "on rank " << comm.rank();
  });
}

// One rank aborts while the others wait for it in `allocate`. They learn of the abort long before their
// deadline.
TEST_P(Registered, AllocateEndsWithTheCommunicator) {
  for (const std::string transport : {"shared", "shm"}) {
    // `part_of` makes all calls count as parts of `allocate`. So the last rank can imitate an `allocate` that
    // stops after its first call, an all_gather.
    Cluster ranks(size(), {.transport = transport, .part_of = Composite::allocate});
    ranks.run([](Communicator& comm) {
      const auto begin = std::chrono::steady_clock::now();
      try {
        if (comm.rank() == comm.size() - 1) {
          const AllocationVote mine{.bytes = 100, .limits = memory_limits()};
          constexpr std::size_t words = sizeof mine / sizeof(std::uint64_t);
          std::vector<std::uint64_t> all(words * static_cast<std::size_t>(comm.size()));
          comm.all_gather(ConstBuffer(&mine, words, DataType::uint64), Buffer(all))
              .wait();  // the same call as in `allocate`
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          comm.abort("enough");
        } else {
          static_cast<void>(comm.allocate(100));
          ADD_FAILURE() << "allocated on rank " << comm.rank();
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::aborted) << error.what();
      }
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
    });
  }
}

TEST_P(Registered, MoreThanThereCanBeIsRefusedOnAllRanks) {
  on_each([](Communicator& comm) {
    // The last size fits into the address space, but no machine has that much memory.
    for (const std::size_t bytes :
         {std::numeric_limits<std::size_t>::max(), std::size_t{1} << 62, std::size_t{1} << 46}) {
      try {
        static_cast<void>(comm.allocate(comm.rank() == 0 ? bytes : 10));
        ADD_FAILURE() << "allocated on rank " << comm.rank();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::resource_exhausted) << error.what();
        EXPECT_NE(std::string_view(error.what()).find(" bytes in all on the host of rank 0 (host "),
                  std::string_view::npos)
            << error.what();
      }
    }
    EXPECT_TRUE(comm.allocate(10).registered());
  });
}

// Memory is registered with the communicator that allocated it. Other communicators treat it as ordinary
// memory.
TEST_P(Registered, OrdinaryMemoryToOtherCommunicators) {
  on_each([](Communicator& comm) {
    const Parts parts(comm, sizeof(std::int32_t));
    std::optional<Communicator> other = comm.split(0, -comm.rank());
    CollectiveCase test;
    test.type = DataType::int32;
    test.count = count;
    run(*other, test, parts.all(), false);
    run(comm, test, parts.all(), true);
  });
}

// Outputs of this size are written by stores that bypass the caches, both in registered memory and through
// windows.
TEST_P(Registered, MoreThanTheCachesHold) {
  const std::uint64_t large =
      (std::uint64_t{64} << 20) / sizeof(std::int32_t) / 2 / static_cast<std::uint64_t>(size()) + 1'001;
  on_each([large](Communicator& comm) {
    const Allocation memory = comm.allocate(2 * (large + 100) * sizeof(std::int32_t));
    const auto bytes = memory.as<std::byte>().subspan(sizeof(std::int32_t));
    const CaseMemory halves{bytes.first(bytes.size() / 2), bytes.last(bytes.size() / 2)};
    std::vector<Kind> kinds = {Kind::all_reduce, Kind::reduce, Kind::broadcast};
    // Under a sanitizer, each world size tests only one kind unless TEST_ALL is set, because one kind takes
    // seconds.
    if (!test_all()) kinds = {kinds[static_cast<std::size_t>(comm.size()) % kinds.size()]};
    for (const Kind kind : kinds) {
      CollectiveCase test;
      test.kind = kind;
      test.type = DataType::int32;
      test.count = large;
      test.root = comm.size() - 1;
      run(comm, test, halves, true);
      run(comm, test, {}, false);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Registered, testing::Values(2, 3, 4, 7),
                         [](const auto& parameter) { return std::to_string(parameter.param); });

TEST(NotRegistered, OrdinaryMemoryWhereRanksDoNotShare) {
  for (const int size : {1, 3}) {
    Cluster ranks(size, {.transport = "inproc"});
    ranks.run([&](Communicator& comm) {
      EXPECT_FALSE(comm.allocate(10).registered());
      const Parts parts(comm, sizeof(std::int32_t));
      for (const CollectiveCase& test : cases(size)) run(comm, test, parts.all(), false);
    });
  }
}

}  // namespace
}  // namespace tutti::test
