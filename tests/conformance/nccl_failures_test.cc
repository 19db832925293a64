// Tests that a failure of NCCL does not harm living ranks or other communicators, and leaks no
// resources.

#include <atomic>
#include <barrier>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <pthread.h>

#include "tests/conformance/nccl_world.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class NcclFailure : public NcclWorld {};

// Rank 2 aborts. NCCL on rank 0 reports a remote error before tutti learns of the abort. NCCL reports this
// error when a call begins, or, for a premultiplied sum, when the call's reduction operator is destroyed. The
// second call meets the same error. Both calls must still fail with rank 2's reason.
TEST_F(NcclFailure, ARemoteErrorDoesNotHideItsCause) {
  for (const ReduceOp& op : {ReduceOp(ReduceOp::sum), ReduceOp::premultiplied_sum(2)}) {
    for (const int queries : {0, 1}) {
      fake_nccl_reset();
      fake_nccl().launch_queries = queries;
      fake_nccl().failure.outcome = nccl::remote_error;
      fake_nccl().failure.rank = 0;
      fake_nccl().failure.call = 1;
      Cluster ranks(3, options());
      std::barrier together(3);
      ranks.run([&](Communicator& comm) {
        DeviceArray<float> a(comm.rank(), {1}), b(comm.rank(), {1});
        EXPECT_TRUE(sum_on_device(comm, a).ok());
        together.arrive_and_wait();
        if (comm.rank() == 2) {
          std::this_thread::sleep_for(milliseconds(60));
          comm.abort("the cause");
          return;
        }
        const Work first = comm.all_reduce(a.buffer(), op);
        const Work second = comm.all_reduce(b.buffer(), op);
        for (const Work& work : {first, second}) {
          const Status failed = outcome(work);
          EXPECT_EQ(failed.peer(), 2) << failed.to_string();
          EXPECT_THAT(failed.message(), HasSubstr("the cause"));
        }
      });
    }
  }
}

// A communicator has 64 groups in its stream, so its next group is postponed. NCCL refuses that
// group later, while a second communicator launches a group. The refusal must not let a third
// communicator launch its group at the same time.
TEST_F(NcclFailure, AnErrorOfAPostponedCallEndsNoOtherCommunicator) {
  Cluster ranks(1, options());
  ranks.run([](Communicator& comm) {
    Communicator a = std::move(*comm.split(0)), b = std::move(*comm.split(0)), c = std::move(*comm.split(0));
    DeviceArray<float> memory(0, {1});
    for (Communicator* const each : {&a, &b, &c}) ASSERT_TRUE(sum_on_device(*each, memory).ok());
    fake_nccl().launch_queries = 0;
    fake_nccl().refusal.call = 65;
    fake_nccl().refusal.rank = 0;
    DeviceStream blocked(0);
    std::atomic<bool> go{false};
    blocked.add([](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); }, &go);
    std::vector<Work> refused, others;
    for (int i = 0; i < 65; ++i)
      refused.push_back(a.all_reduce(memory.buffer(), ReduceOp::sum, {.stream = blocked.handle()}));
    fake_nccl().launch_queries = 50;
    others.push_back(b.all_reduce(memory.buffer(), ReduceOp::sum));
    for (int i = 0; i < 4; ++i) others.push_back(c.all_reduce(memory.buffer(), ReduceOp::sum));
    go = true;
    go.notify_all();
    for (const Work& work : refused) static_cast<void>(outcome(work));
    EXPECT_EQ(a.status().code(), Code::aborted);
    for (const Work& work : others) {
      const Status status = outcome(work);
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
  });
}

// NCCL may still write to the memory of the call, so a stream must not continue as if the call had ended.
TEST_F(NcclFailure, AStreamCannotWaitForACallThatIsBeingAborted) {
  fake_nccl().hang.rank = 0;
  fake_nccl().abort_blocks = true;
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    const DeviceStream stream(comm.rank());
    const DeviceArray<float> memory(comm.rank(), {1});
    Work work = comm.all_reduce(memory.buffer(), ReduceOp::sum);
    together.arrive_and_wait();
    comm.abort("enough");
    while (fake_nccl().aborting < 2) comm.progress();
    EXPECT_FALSE(work.done());
    try {
      work.wait_on(stream.handle());
      ADD_FAILURE() << "the stream does not wait";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::aborted) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("enough"));
    }
    together.arrive_and_wait();
    fake_nccl().abort_blocks = false;
    EXPECT_EQ(outcome(work).code(), Code::aborted);
  });
}

// No thread can be started while a `NoNewThreads` exists, because the stack of a new thread would
// not fit into the address space.
class NoNewThreads {
 public:
  NoNewThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 48);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoNewThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST_F(NcclFailure, WithoutAThreadASessionIsNotOpened) {
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    const DeviceArray<float> memory(comm.rank(), {1});
    std::optional<NoNewThreads> none;
    together.arrive_and_wait();  // the threads of both ranks exist
    if (comm.rank() == 0) none.emplace();
    together.arrive_and_wait();
    const Status failed = sum_on_device(comm, memory);
    EXPECT_EQ(failed.code(), Code::resource_exhausted) << failed.to_string();
    EXPECT_THAT(failed.message(), HasSubstr("cannot start a thread for NCCL's communicator"));
    together.arrive_and_wait();
  });
}

long kilobytes_of_address_space() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    long value = 0;
    if (word == "VmSize:" && file >> value) return value;
  }
  return 0;
}

// The stack of a thread that has not been joined takes 8 MB.
TEST_F(NcclFailure, OpeningsThatFailLeaveNoStacks) {
  fake_nccl().init_queries = 1'000'000;
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    const DeviceArray<float> memory(comm.rank(), {1});
    long before = 0;
    for (int i = 0; i < 60; ++i) {
      Communicator part = std::move(*comm.split(0));
      EXPECT_FALSE(sum_on_device(part, memory, {.timeout = milliseconds(20)}).ok());
      if (i == 10) before = kilobytes_of_address_space();
    }
    together.arrive_and_wait();
    EXPECT_LT(kilobytes_of_address_space() - before, 200'000);
    together.arrive_and_wait();
  });
}

}  // namespace
}  // namespace tutti::test
