// Tests communicators that are made by splitting another communicator.

#include <chrono>
#include <optional>
#include <thread>

#include "tests/conformance/on_each_transport.h"

namespace tutti::test {
namespace {

class CommunicatorSplitting : public OnEachTransport {};

TEST_P(CommunicatorSplitting, SplitSharesConnections) {
  Cluster ranks(4, options());
  ranks.run([](Communicator& comm) {
    std::optional<Communicator> half = comm.split(comm.rank() % 2, -comm.rank());
    ASSERT_TRUE(half.has_value());
    EXPECT_EQ(half->size(), 2);
    EXPECT_EQ(half->rank(), comm.rank() < 2 ? 1 : 0);  // the key puts the higher rank first
    std::int32_t value = comm.rank();
    half->all_reduce(std::span(&value, 1), ReduceOp::sum).wait();
    EXPECT_EQ(value, comm.rank() % 2 == 0 ? 2 : 4);
    std::optional<Communicator> some = comm.split(comm.rank() == 3 ? no_color : 0);
    EXPECT_EQ(some.has_value(), comm.rank() != 3);
    // `half` fails; `comm` continues over the same connections.
    comm.barrier().wait();
    if (comm.rank() == 0) half->abort("only this one");
    if (comm.rank() == 2) {
      EXPECT_EQ(outcome(half->barrier()).code(), Code::aborted);
    }
    comm.barrier().wait();
    EXPECT_TRUE(comm.status().ok());
  });
}

// In this test, the old communicator fails during a split. Some ranks may already have the new
// communicator, and the other ranks never get it.
class SplittingByMessages : public OnEachTransport {};

TEST_P(SplittingByMessages, ASplitThatFailsOnSomeRanksLeavesNobodyWaiting) {
  Cluster ranks(3, {.transport = GetParam()});
  ranks.run([](Communicator& comm) {
    for (int round = 0; round < 100; ++round) {
      Communicator parent = std::move(*comm.split(0));
      std::thread other([&] {
        if (comm.rank() != 0) return;
        std::this_thread::sleep_for(std::chrono::microseconds(3 * round));
        parent.abort("enough");
      });
      try {
        parent.barrier().wait();
        Communicator part = std::move(*parent.split(0));
        part.barrier({.timeout = std::chrono::seconds(20)}).wait();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::aborted) << error.what();
      }
      other.join();
      comm.barrier().wait();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, SplittingByMessages, testing::Values("inproc", "tcp"), name_of_transport);

INSTANTIATE_TEST_SUITE_P(All, CommunicatorSplitting, testing::ValuesIn(all_connections()), name_of_transport);

}  // namespace
}  // namespace tutti::test
