// Tests several worlds in one process. Their ranks use the same devices with NCCL.

#include <barrier>
#include <chrono>
#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/nccl_world.h"

namespace tutti::test {
namespace {

using std::chrono::seconds;

class NcclWorlds : public NcclWorld {
 protected:
  // Runs two worlds of two ranks each, on two threads. A thread is the same rank in both worlds, and gets the
  // communicators of both. Both communicators have opened their sessions.
  template <class Body>
  void run(const Body& body) {
    Cluster first(2, options(seconds(30))), second(2, options(seconds(30)));
    std::barrier together(2);
    first.run([&](Communicator& a) {
      Communicator& b = second.communicator(a.rank());
      const DeviceArray<float> x(a.rank(), {1}), y(a.rank(), {1});
      EXPECT_TRUE(sum_on_device(a, x).ok());
      EXPECT_TRUE(sum_on_device(b, y).ok());
      together.arrive_and_wait();
      body(a, x, b, y, together);
      together.arrive_and_wait();
    });
  }
};

// NCCL puts the first group of rank 0 into its stream only after a while. If the second group overtook the
// first one, the devices of the two ranks would carry out the groups in different orders. Each device would
// then wait for the other.
TEST_F(NcclWorlds, IssueTheirCallsInTheOrderInWhichTheyAreMade) {
  run([](Communicator& a, const auto& x, Communicator& b, const auto& y, std::barrier<>& together) {
    if (a.rank() == 0) {
      fake_nccl().takes_turns = true;
      fake_nccl().launch_queries = 500;
    } else {
      together.arrive_and_wait();
    }
    const Work first = a.all_reduce(x.buffer(), ReduceOp::sum);
    if (a.rank() == 0) fake_nccl().launch_queries = 0;
    const Work second = b.all_reduce(y.buffer(), ReduceOp::sum);
    if (a.rank() == 0) together.arrive_and_wait();
    EXPECT_TRUE(outcome(first).ok()) << outcome(first).to_string();
    EXPECT_TRUE(outcome(second).ok()) << outcome(second).to_string();
  });
}

// NCCL never puts the group of the first world into a stream.
TEST_F(NcclWorlds, GoOnWhenAnotherWorldIsGivenUp) {
  run([](Communicator& a, const auto& x, Communicator& b, const auto& y, std::barrier<>& together) {
    fake_nccl().launch_queries = 1'000'000'000;
    together.arrive_and_wait();
    const Work hangs = a.all_reduce(x.buffer(), ReduceOp::sum);
    together.arrive_and_wait();
    fake_nccl().launch_queries = 1;
    Work waits = b.all_reduce(y.buffer(), ReduceOp::sum);
    EXPECT_FALSE(waits.wait_for(std::chrono::milliseconds(20))) << "its turn has not come";
    together.arrive_and_wait();
    a.abort("enough");
    EXPECT_EQ(outcome(hangs).code(), Code::aborted);
    EXPECT_TRUE(outcome(waits).ok()) << outcome(waits).to_string();
    EXPECT_EQ(y.view()[0], 4.0f);
  });
}

// The calls alternate between the two worlds. So a thread that has launched a group of one world often goes
// on to launch the next group, which belongs to the other world.
TEST_F(NcclWorlds, MakeManyCallsAndOneOfThemIsGivenUp) {
  constexpr int calls = 300;
  for (const bool gives_up : {false, true}) {
    run([&](Communicator& a, const auto&, Communicator& b, const auto&, std::barrier<>&) {
      std::vector<std::unique_ptr<DeviceArray<float>>> memory;
      std::vector<Work> of_a, of_b;
      for (int i = 0; i < calls; ++i) {
        const bool first = i % 2 == 0;
        const Buffer buffer =
            memory.emplace_back(std::make_unique<DeviceArray<float>>(a.rank(), std::vector<float>{1, 1}))
                ->buffer();
        fake_nccl().launch_queries = i % 5;
        (first ? of_a : of_b).push_back((first ? a : b).all_reduce(buffer, ReduceOp::sum));
        if (i == calls / 2 && gives_up && a.rank() == 0) a.abort("enough");
      }
      for (const Work& work : of_b) EXPECT_TRUE(outcome(work).ok()) << outcome(work).to_string();
      for (const Work& work : of_a) EXPECT_TRUE(outcome(work).ok() || gives_up) << outcome(work).to_string();
      for (int i = 0; i < calls; ++i) {
        const bool is_known = i % 2 == 1 || !gives_up;
        EXPECT_TRUE(!is_known || memory[static_cast<std::size_t>(i)]->view()[1] == 2.0f) << i;
      }
    });
  }
}

}  // namespace
}  // namespace tutti::test
