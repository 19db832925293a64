#include "tests/conformance/nccl_world.h"

#include "transport/nccl/factory.h"

namespace tutti::test {

namespace {

const cuda::Api& driver() { return **cuda::load(TUTTI_FAKE_CUDA); }

}  // namespace

DeviceStream::DeviceStream(int device)
    : device_(cuda::Device::open(driver(), device).take()), stream_([this] {
        const cuda::Device::Current current(*device_);
        return cuda::Stream::create(*device_).take();
      }()) {}

DeviceStream::~DeviceStream() {
  synchronise();
  const cuda::Device::Current current(*device_);
  stream_.reset();
}

void DeviceStream::synchronise() const { driver().StreamSynchronize(stream_->handle()); }

void DeviceStream::add(void (*function)(void*), void* data) const {
  EXPECT_EQ(cuLaunchHostFunc(stream_->handle(), function, data), cuda::success);
}

void DeviceStream::begin_capture() const {
  EXPECT_EQ(cuStreamBeginCapture_v2(stream_->handle(), 0), cuda::success);
}

bool DeviceStream::end_capture() const {
  CUgraph_st* graph = nullptr;
  const bool valid = cuStreamEndCapture(stream_->handle(), &graph) == cuda::success;
  if (graph != nullptr) cuGraphDestroy(graph);
  return valid;
}

void NcclWorld::SetUp() {
  fake_cuda_reset(16);
  fake_nccl_reset();
}

void NcclWorld::TearDown() {
  EXPECT_EQ(fake_nccl().communicators, 0);
  EXPECT_EQ(fake_nccl().registrations, 0);
  EXPECT_EQ(fake_nccl().foreign_registrations, 0);
  EXPECT_EQ(fake_nccl().operations, 0);
  EXPECT_EQ(fake_nccl().memories, 0);
  const FakeCudaCounts counts = fake_cuda_counts();
  EXPECT_EQ(counts.streams, 0);
  EXPECT_EQ(counts.events, 0);
  EXPECT_EQ(counts.device_bytes, 0u);
}

std::unique_ptr<Offload> NcclWorld::offload() {
  return nccl::create({.cuda_library = TUTTI_FAKE_CUDA, .nccl_library = TUTTI_FAKE_NCCL}).take();
}

ClusterOptions NcclWorld::options(std::chrono::nanoseconds timeout) {
  return {.timeout = timeout, .offloads = [](int) {
            std::vector<std::unique_ptr<Offload>> only;
            only.push_back(offload());
            return only;
          }};
}

void initialize_cuda() { EXPECT_EQ(driver().Init(0), cuda::success); }

Status sum_on_device(Communicator& comm, const DeviceArray<float>& data, const CallOptions& options) {
  return outcome(comm.all_reduce(data.buffer(), ReduceOp::sum, options));
}

}  // namespace tutti::test
