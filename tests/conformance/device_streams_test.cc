// Tests streams that have no room for more work. CUDA then makes a thread wait that adds work to such a
// stream. If the stream itself waits for a call, tutti must go on with the call meanwhile.

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/nccl_world.h"
#include "tests/support/mirrored_offload.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using testing::Each;

constexpr int room = 16;

// The parameter is the library.
class FullStream : public NcclWorld, public testing::WithParamInterface<std::string> {
 protected:
  static ClusterOptions world() {
    ClusterOptions made = options(std::chrono::seconds(20));
    if (GetParam() == "staged") made.offloads = staged_offloads(64);
    return made;
  }
  // Lets two ranks make two calls. After the first call, the stream of rank 0 waits for it, and is full. Then
  // rank 0 calls `add`, which adds work to the stream and makes the second call. Rank 1 makes its calls while
  // rank 0 waits for room.
  template <class Add>
  void run(const Add& add);
};

template <class Add>
void FullStream::run(const Add& add) {
  Cluster ranks(2, world());
  std::atomic<bool> full{false};
  ranks.run([&](Communicator& comm) {
    const DeviceArray<float> a(comm.rank(), {1, 1}), b(comm.rank(), {1, 1});
    EXPECT_TRUE(sum_on_device(comm, a).ok());
    Work first, second;
    const DeviceStream stream(comm.rank());
    if (comm.rank() == 0) {
      fake_nccl().launch_queries = 5000;  // the first call is not in NCCL's stream yet when the stream waits
      fake_cuda_limit_streams(room);
      first = comm.all_reduce(a.buffer(), ReduceOp::sum, {.stream = stream.handle()});
      first.wait_on(stream.handle());
      fake_nccl().launch_queries = 1;
      for (int i = 1; i < room; ++i) stream.add([](void*) {}, nullptr);
      full = true;
      second = add(comm, first, b, stream);
    } else {
      while (!full || fake_cuda_counts().waiting_for_room == 0) std::this_thread::sleep_for(milliseconds(1));
      first = comm.all_reduce(a.buffer(), ReduceOp::sum);
      second = comm.all_reduce(b.buffer(), ReduceOp::sum);
      EXPECT_TRUE(outcome(first).ok()) << outcome(first).to_string();
      fake_cuda_limit_streams(0);  // if the call has failed, rank 0 must go on
    }
    EXPECT_TRUE(outcome(first).ok()) << outcome(first).to_string();
    EXPECT_TRUE(outcome(second).ok()) << outcome(second).to_string();
    EXPECT_THAT(a.values(), Each(4.0f));
    EXPECT_THAT(b.values(), Each(2.0f));
  });
}

TEST_P(FullStream, CanWaitForOneMoreCall) {
  run([](Communicator& comm, Work& first, const DeviceArray<float>& data, const DeviceStream& stream) {
    first.wait_on(stream.handle());
    return comm.all_reduce(data.buffer(), ReduceOp::sum);
  });
}

TEST_P(FullStream, CanBeFollowedByACall) {
  run([](Communicator& comm, Work&, const DeviceArray<float>& data, const DeviceStream& stream) {
    return comm.all_reduce(data.buffer(), ReduceOp::sum, {.stream = stream.handle()});
  });
}

INSTANTIATE_TEST_SUITE_P(, FullStream, testing::Values("nccl", "staged"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tutti::test
