// Tests the errors that ranks get if they make different calls or wrong calls, or if a rank fails.

#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/conformance/on_each_transport.h"

namespace tutti::test {
namespace {

class CommunicatorErrors : public OnEachTransport {};

TEST_P(CommunicatorErrors, DifferentCallsAreAMismatchOnBothSides) {
  struct Variant {
    const char* name;
    std::function<Work(Communicator&, std::vector<float>&, bool)> call;
  };
  const std::vector<Variant> variants = {
      {"kind", [](Communicator& c, auto& v,
                  bool odd) { return odd ? c.broadcast(v, 0) : c.all_reduce(v, ReduceOp::sum); }},
      {"count",
       [](Communicator& c, auto& v, bool odd) {
         return c.all_reduce(Buffer(v.data(), odd ? 3 : 4, DataType::float32), ReduceOp::sum);
       }},
      {"type",
       [](Communicator& c, auto& v, bool odd) {
         return c.all_reduce(Buffer(v.data(), 4, odd ? DataType::int32 : DataType::float32), ReduceOp::sum);
       }},
      {"op", [](Communicator& c, auto& v,
                bool odd) { return c.all_reduce(v, odd ? ReduceOp::max : ReduceOp::min); }},
      {"root", [](Communicator& c, auto& v, bool odd) { return c.broadcast(v, odd ? 1 : 0); }},
      {"algorithm",
       [](Communicator& c, auto& v, bool odd) {
         return c.all_reduce(v, ReduceOp::sum, {.algorithm = odd ? "ring" : "recursive_doubling"});
       }},
  };
  for (const Variant& variant : variants) {
    Cluster ranks(2, options());
    ranks.run([&](Communicator& comm) {
      std::vector<float> data(4, 1.0f);
      Status status = outcome(variant.call(comm, data, comm.rank() == 1));
      // A rank that needs no data from the other rank may complete the call before it can notice
      // the mismatch. In that case its next call reports the error.
      if (status.ok()) status = outcome(comm.barrier());
      EXPECT_EQ(status.code(), Code::mismatch) << variant.name << ": " << status.to_string();
      EXPECT_EQ(comm.status().code(), Code::mismatch);
    });
  }
}

// Without a control plane, no rank knows which rank is wrong. So the error names two ranks that
// make different calls.
TEST_P(CommunicatorErrors, EveryRankHearsOfTheOddOne) {
  using Variant = std::function<Work(Communicator&, std::vector<float>&, bool)>;
  const auto type = [](bool odd) { return odd ? DataType::int32 : DataType::float32; };
  std::vector<Variant> variants = {
      [](Communicator& c, auto& v, bool odd) {
        return odd ? c.all_gather(v) : c.all_reduce(v, ReduceOp::sum);
      },
      [](Communicator& c, auto& v, bool odd) {
        return c.all_reduce(Buffer(v.data(), odd ? 3 : 6, DataType::float32), ReduceOp::sum);
      },
      [&](Communicator& c, auto& v, bool odd) {
        return c.all_reduce(Buffer(v.data(), 6, type(odd)), ReduceOp::sum);
      },
      [](Communicator& c, auto& v, bool odd) { return c.all_reduce(v, odd ? ReduceOp::max : ReduceOp::min); },
  };
  // Over messages, two roots may wait for each other, and only a control plane could notice such a
  // wait. So this variant is tested only over shared memory.
  if (GetParam() == "shared" || GetParam() == "shm") {
    variants.push_back(
        [](Communicator& c, auto& v, bool odd) { return c.reduce(v, ReduceOp::sum, odd ? 1 : 0); });
  }
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    for (int odd = 0; odd < 3; ++odd) {
      Cluster ranks(3, options());
      ranks.run([&](Communicator& comm) {
        std::vector<float> data(6, 1.0f);
        Status status = outcome(variants[variant](comm, data, comm.rank() == odd));
        for (int i = 0; i < 20 && status.ok(); ++i) status = outcome(comm.barrier());
        EXPECT_EQ(status.code(), Code::mismatch) << variant << ": " << status.to_string();
        int named = 0;
        for (int rank = 0; rank < 3; ++rank)
          named += contains(status.message(), comm.describe(rank) + " called ") ? 1 : 0;
        EXPECT_EQ(named, 2) << status.message();
        EXPECT_TRUE(contains(status.message(), comm.describe(odd) + " called ")) << status.message();
        EXPECT_TRUE(status.peer() == odd || status.peer() == -1) << status.peer() << ": " << status.message();
      });
    }
  }
}

// If one rank's function throws, the collective fails on all ranks, even on those that already have
// their result.
TEST_P(CommunicatorErrors, AUsersOperationThatThrowsFailsOnAllRanks) {
  struct Thrower {
    bool throws = false;
    bool has_thrown = false;
  };
  const auto add = [](const void* left, const void* right, void* out, std::size_t count, DataType,
                      void* state) {
    auto& thrower = *static_cast<Thrower*>(state);
    thrower.has_thrown |= thrower.throws;
    if (thrower.throws) throw std::runtime_error("element 7 is odd");
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<std::int64_t*>(out)[i] =
          static_cast<const std::int64_t*>(left)[i] + static_cast<const std::int64_t*>(right)[i];
    }
  };
  const std::vector<CollectiveKind> kinds = {CollectiveKind::all_reduce, CollectiveKind::reduce,
                                             CollectiveKind::reduce_scatter, CollectiveKind::scan};
  int failures = 0;
  for (const CollectiveKind kind : kinds) {
    for (const std::size_t count : {3u, 30'000u}) {
      for (int who = 0; who < 3; ++who) {
        Cluster ranks(3, options());
        std::array<Thrower, 3> throwers;
        throwers[static_cast<std::size_t>(who)].throws = true;
        std::array<Status, 3> seen;
        ranks.run([&](Communicator& comm) {
          const auto rank = static_cast<std::size_t>(comm.rank());
          const ReduceOp op = ReduceOp::user("add", add, true, &throwers[rank]);
          std::vector<std::int64_t> data(count, 1), block(count / 3);
          switch (kind) {
            case CollectiveKind::all_reduce:
              seen[rank] = outcome(comm.all_reduce(data, op));
              break;
            case CollectiveKind::reduce:
              seen[rank] = outcome(comm.reduce(data, op, 1));
              break;
            case CollectiveKind::reduce_scatter:
              seen[rank] = outcome(comm.reduce_scatter(data, block, op));
              break;
            default:
              seen[rank] = outcome(comm.scan(data, op));
          }
        });
        const bool thrown = throwers[static_cast<std::size_t>(who)].has_thrown;
        failures += thrown ? 1 : 0;
        for (std::size_t rank = 0; rank < 3; ++rank) {
          SCOPED_TRACE(std::string(to_string(kind)) + " of " + std::to_string(count) + ", thrown by " +
                       std::to_string(who) + ", rank " + std::to_string(rank));
          EXPECT_EQ(seen[rank].code(), thrown ? Code::aborted : Code::ok) << seen[rank].to_string();
          EXPECT_EQ(seen[rank].peer(), thrown ? who : -1);
          const std::string reason =
              ranks.communicator(who).describe(who) + ": its operation \"add\" failed: element 7 is odd";
          EXPECT_EQ(contains(seen[rank].message(), reason), thrown) << seen[rank].message();
        }
      }
    }
  }
  EXPECT_GE(failures, 2 * static_cast<int>(kinds.size()));
}

TEST_P(CommunicatorErrors, ATypeThatIsNoneIsRefused) {
  const auto none = static_cast<DataType>(99);
  Cluster ranks(2, options());
  ranks.run([&](Communicator& comm) {
    std::vector<std::uint64_t> data(8), counts(2, 2);
    const Buffer odd(data.data(), 4, none), even(data.data() + 4, 4, none);
    const std::vector<std::function<Work()>> calls = {
        [&] { return comm.all_reduce(odd, ReduceOp::sum); },
        [&] { return comm.all_reduce(odd, even, ReduceOp::max); },
        [&] { return comm.broadcast(odd, 0); },
        [&] { return comm.all_gather(odd); },
        [&] { return comm.reduce_scatter(odd, ReduceOp::sum); },
        [&] { return comm.all_to_all_v(odd, counts, even, counts); },
        [&] { return comm.send(odd, 0); },
        [&] { return comm.recv(odd, 0); },
    };
    for (const auto& call : calls) {
      const Status status = outcome(call());
      EXPECT_EQ(status.code(), Code::invalid_argument) << status.to_string();
      EXPECT_TRUE(contains(status.message(), "99 is not a data type")) << status.message();
    }
    comm.barrier().wait();
  });
}

TEST_P(CommunicatorErrors, InvalidArgumentsAreRefusedLocally) {
  Cluster ranks(1, options());
  ranks.run([](Communicator& comm) {
    std::vector<float> data(10);
    std::vector<double> doubles(10);
    std::vector<std::uint64_t> counts(3);
    const std::span<float> all(data);
    EXPECT_EQ(outcome(comm.all_reduce(data, doubles, ReduceOp::sum)).code(), Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_reduce(all.first(9), all.last(9), ReduceOp::sum)).code(),
              Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_reduce(data, ReduceOp::bit_and)).code(), Code::unsupported);
    EXPECT_EQ(outcome(comm.broadcast(data, 1)).code(), Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_gather_v(data, data, counts)).code(), Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_reduce(Buffer(nullptr, 3, DataType::float32), ReduceOp::sum)).code(),
              Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_reduce(data, ReduceOp::sum, {.algorithm = "no_such"})).code(),
              Code::invalid_argument);
    EXPECT_EQ(outcome(comm.send(data, 5)).code(), Code::invalid_argument);
    const Buffer beyond(data.data(), (std::size_t{1} << 62) + 1, DataType::float32);
    EXPECT_EQ(outcome(comm.all_reduce(beyond, ReduceOp::sum)).code(), Code::invalid_argument);
    EXPECT_EQ(outcome(comm.send(beyond, 0)).code(), Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_gather(beyond, all.first(0))).code(), Code::invalid_argument);
    EXPECT_TRUE(comm.status().ok());
  });
}

TEST_P(CommunicatorErrors, AnEmptyOneThrows) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    Communicator moved = std::move(comm);
    std::int32_t value = 1;
    const Buffer buffer(&value, 1, DataType::int32);
    const std::vector<std::function<void()>> calls = {
        [&] { static_cast<void>(comm.rank()); },
        [&] { static_cast<void>(comm.size()); },
        [&] { comm.all_reduce(buffer, ReduceOp::sum); },
        [&] { comm.barrier(); },
        [&] { comm.send(buffer, 0); },
        [&] { comm.recv(buffer, 0); },
        [&] { comm.batch({}); },
        [&] { comm.split(0); },
        [&] { comm.allocate(1); },
        [&] { comm.abort("nothing"); },
        [&] { static_cast<void>(comm.status()); },
        [&] { comm.shrink(); },
        [&] { comm.describe(0); },
        [&] { comm.statistics(); },
        [&] { comm.descriptor(); },
        [&] { comm.progress(); },
    };
    for (std::size_t i = 0; i < calls.size(); ++i) {
      try {
        calls[i]();
        ADD_FAILURE() << i << " throws nothing";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::invalid_argument) << i;
      }
    }
    EXPECT_FALSE(comm);
    comm = std::move(moved);
    comm.barrier().wait();
  });
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorErrors, testing::ValuesIn(all_connections()), name_of_transport);

}  // namespace
}  // namespace tutti::test
