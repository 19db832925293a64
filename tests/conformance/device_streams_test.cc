// Tests which streams a call may follow, and which streams may wait for a call. Also tests streams that have
// no room for more work. A thread that adds work to such a stream has to wait in CUDA. The stream itself may
// wait for a call of tutti, so tutti must continue that call in the meantime.

#include <atomic>
#include <barrier>
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
using testing::HasSubstr;

constexpr int room = 16;

// The parameter is the library that the ranks use.
class DeviceStreams : public NcclWorld, public testing::WithParamInterface<std::string> {
 protected:
  static ClusterOptions world(std::chrono::nanoseconds timeout) {
    ClusterOptions made = options(timeout);
    if (GetParam() == "staged") made.offloads = staged_offloads(64);
    return made;
  }
};

// --- streams of other devices ---

class ForeignStream : public DeviceStreams {
 protected:
  // Runs two rounds with three ranks. In each round, rank 0 makes a call that follows a stream of a device
  // that is not the buffer's. In the first round, this call is the communicator's first call. In the second
  // round, another call precedes it. After the call, all ranks call `next`.
  template <class Next>
  void run(const Next& next);
};

template <class Next>
void ForeignStream::run(const Next& next) {
  Cluster ranks(3, world(std::chrono::seconds(60)));
  std::barrier together(3);
  ranks.run([&](Communicator& comm) {
    for (const bool first_call : {true, false}) {
      Communicator part = std::move(*comm.split(0));
      const DeviceArray<float> data(comm.rank(), {1, 1});
      const DeviceStream foreign(comm.rank() + 3);
      if (!first_call) {
        EXPECT_TRUE(sum_on_device(part, data).ok());
      }
      together.arrive_and_wait();
      if (comm.rank() == 0) {
        const Status refused = sum_on_device(part, data, {.stream = foreign.handle()});
        EXPECT_EQ(refused.code(), Code::invalid_argument) << refused.to_string();
        EXPECT_THAT(refused.message(), HasSubstr("the stream is of CUDA device 3, but the buffers are in "
                                                 "memory of CUDA device 0"));
        EXPECT_TRUE(part.status().ok()) << part.status().to_string();
      }
      next(part, data);
      together.arrive_and_wait();
    }
  });
}

// The refused call does not count, so the other ranks need not make it.
TEST_P(ForeignStream, IsRefusedAndTheCommunicatorRemainsUsable) {
  run([](Communicator& comm, const DeviceArray<float>& data) {
    EXPECT_TRUE(sum_on_device(comm, data).ok());
    EXPECT_TRUE(comm.status().ok());
  });
}

TEST_P(ForeignStream, IsAMismatchIfTheOtherRanksMakeTheCallAndThisRankTheNext) {
  run([](Communicator& comm, const DeviceArray<float>& data) {
    const ReduceOp& op = comm.rank() == 0 ? ReduceOp::max : ReduceOp::sum;
    const Status differs = outcome(comm.all_reduce(data.buffer(), op));
    EXPECT_EQ(differs.code(), Code::mismatch) << differs.to_string();
  });
}

TEST_P(ForeignStream, IsATimeoutThatNamesTheRankIfOnlyTheOtherRanksMakeTheCall) {
  run([](Communicator& comm, const DeviceArray<float>& data) {
    if (comm.rank() == 0) return;
    const Status late = sum_on_device(comm, data, {.timeout = milliseconds(300)});
    EXPECT_EQ(late.code(), Code::timeout) << late.to_string();
    EXPECT_THAT(late.message(), HasSubstr(comm.describe(0)));
  });
}

INSTANTIATE_TEST_SUITE_P(, ForeignStream, testing::Values("nccl", "staged"),
                         [](const auto& each) { return each.param; });

// --- streams that wait for a call ---

// A `ContextStream` is a stream in a context that is not the primary context of its device.
class ContextStream {
 public:
  explicit ContextStream(int device) {
    initialize_cuda();
    EXPECT_EQ(cuCtxCreate_v2(&context_, 0, device), cuda::success);
    EXPECT_EQ(api().StreamCreate(&stream_, cuda::stream_non_blocking), cuda::success);
    EXPECT_EQ(api().CtxPopCurrent(&context_), cuda::success);
  }
  ~ContextStream() {
    synchronise();
    api().StreamDestroy(stream_);
    EXPECT_EQ(cuCtxDestroy_v2(context_), cuda::success);
  }
  ContextStream(const ContextStream&) = delete;
  ContextStream& operator=(const ContextStream&) = delete;

  void* handle() const { return stream_; }
  void synchronise() const { api().StreamSynchronize(stream_); }
  void add(void (*function)(void*), void* data) const {
    EXPECT_EQ(cuLaunchHostFunc(stream_, function, data), cuda::success);
  }

 private:
  static const cuda::Api& api() { return **cuda::load(TUTTI_FAKE_CUDA); }
  cuda::Context context_ = nullptr;
  cuda::StreamHandle stream_ = nullptr;
};

// Work of a stream sets and reads the first element of the array.
struct FirstElement {
  explicit FirstElement(const DeviceArray<float>& of) : place(of.view().front()) {}
  static void set(void* self) {
    std::this_thread::sleep_for(milliseconds(2));
    static_cast<FirstElement*>(self)->place = 7;
  }
  static void read(void* self) {
    static_cast<FirstElement*>(self)->seen = static_cast<FirstElement*>(self)->place;
  }
  float& place;
  float seen = 0;
};

class WaitingStream : public DeviceStreams {
 protected:
  // Lets a stream of rank 0 wait for a call that rank 1 has not made yet. In the first round, the fake
  // NCCL puts the call into its own stream at once. In the second round, it does so only after tutti has
  // asked it 5000 times whether the call is still in progress.
  static void run(const auto& stream);
};

void WaitingStream::run(const auto& stream) {
  Cluster ranks(2, world(std::chrono::seconds(20)));
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    for (const int queries : {0, 5000}) {
      const DeviceArray<float> data(comm.rank(), {1, 1});
      EXPECT_TRUE(sum_on_device(comm, data).ok());
      FirstElement first(data);
      Work work;
      if (comm.rank() == 0) {
        fake_nccl().launch_queries = queries;
        work = comm.all_reduce(data.buffer(), ReduceOp::sum);
        EXPECT_NO_THROW(work.wait_on(stream.handle()));
        stream.add(FirstElement::read, &first);
        fake_nccl().launch_queries = 1;
      }
      together.arrive_and_wait();
      if (comm.rank() == 1) work = comm.all_reduce(data.buffer(), ReduceOp::sum);
      if (comm.rank() == 0) {
        stream.synchronise();
        EXPECT_EQ(first.seen, 4.0f);
      }
      EXPECT_TRUE(outcome(work).ok()) << outcome(work).to_string();
      together.arrive_and_wait();
    }
  });
}

TEST_P(WaitingStream, MayBeOfAnotherDevice) { run(DeviceStream(3)); }

TEST_P(WaitingStream, MayBeOfAnotherContextOfTheDevice) { run(ContextStream(0)); }

TEST_P(WaitingStream, ThatDoesNotExistIsAnInvalidArgument) {
  Cluster ranks(2, world(std::chrono::seconds(20)));
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    const DeviceArray<float> data(comm.rank(), {1, 1});
    EXPECT_TRUE(sum_on_device(comm, data).ok());
    Work work;
    if (comm.rank() == 0) {
      work = comm.all_reduce(data.buffer(), ReduceOp::sum);
      try {
        work.wait_on(&work);
        ADD_FAILURE() << "there is no such stream";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::invalid_argument) << error.what();
      }
    }
    together.arrive_and_wait();
    if (comm.rank() == 1) work = comm.all_reduce(data.buffer(), ReduceOp::sum);
    EXPECT_TRUE(outcome(work).ok()) << outcome(work).to_string();
    EXPECT_TRUE(sum_on_device(comm, data).ok());
  });
}

TEST_P(WaitingStream, OfAnotherContextMayAlsoBeFollowed) {
  Cluster ranks(2, world(std::chrono::seconds(20)));
  ranks.run([&](Communicator& comm) {
    const DeviceArray<float> data(comm.rank(), {1, 1});
    const ContextStream stream(comm.rank());
    for (int i = 0; i < 5; ++i) {
      FirstElement first(data);
      stream.add(FirstElement::set, &first);
      Work work = comm.all_reduce(data.buffer(), ReduceOp::sum, {.stream = stream.handle()});
      EXPECT_TRUE(outcome(work).ok()) << outcome(work).to_string();
      EXPECT_EQ(data.values()[0], 14.0f);
      EXPECT_TRUE(sum_on_device(comm, data).ok());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, WaitingStream, testing::Values("nccl", "staged"),
                         [](const auto& each) { return each.param; });

// --- full streams ---

class FullStream : public DeviceStreams {
 protected:
  // Lets two ranks make two calls. The stream of rank 0 waits for the first call, and is full. Then
  // rank 0 calls `add`, which adds work to the stream and makes the second call. Rank 1 makes its
  // calls while rank 0 waits for room.
  template <class Add>
  void run(const Add& add);
};

template <class Add>
void FullStream::run(const Add& add) {
  Cluster ranks(2, world(std::chrono::seconds(20)));
  std::atomic<bool> full{false};
  ranks.run([&](Communicator& comm) {
    const DeviceArray<float> a(comm.rank(), {1, 1}), b(comm.rank(), {1, 1});
    EXPECT_TRUE(sum_on_device(comm, a).ok());
    Work first, second;
    const DeviceStream stream(comm.rank());
    if (comm.rank() == 0) {
      // This keeps the first call out of NCCL's stream until rank 0's stream waits.
      fake_nccl().launch_queries = 5000;
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
      fake_cuda_limit_streams(0);  // rank 0 must continue even if the call has failed
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
