#include "tests/conformance/nccl_world.h"

#include <algorithm>
#include <bit>

#include "transport/nccl/factory.h"

namespace tutti::test {

namespace {

const cuda::Api& driver() { return **cuda::load(TUTTI_FAKE_CUDA); }

}  // namespace

DeviceMemory::DeviceMemory(int device, std::size_t bytes)
    : device_(cuda::Device::open(driver(), device).take()), bytes_(bytes) {
  const cuda::Device::Current current(*device_);
  EXPECT_EQ(cuMemAlloc_v2(&address_, std::max<std::size_t>(bytes, 1)), cuda::success);
}

DeviceMemory::DeviceMemory(int device, std::span<const float> elements)
    : DeviceMemory(device, elements.size_bytes()) {
  write(elements.data(), bytes_);
}

DeviceMemory::~DeviceMemory() { cuMemFree_v2(address_); }

void DeviceMemory::write(const void* from, std::size_t bytes, std::size_t offset) {
  if (bytes == 0) return;
  const cuda::Device::Current current(*device_);
  EXPECT_EQ(cuMemcpy(address_ + offset, std::bit_cast<cuda::Address>(from), bytes), cuda::success);
}

void DeviceMemory::read(void* to, std::size_t bytes, std::size_t offset) const {
  if (bytes == 0) return;
  const cuda::Device::Current current(*device_);
  EXPECT_EQ(cuMemcpy(std::bit_cast<cuda::Address>(to), address_ + offset, bytes), cuda::success);
}

float DeviceMemory::first() const {
  float value = 0;
  read(&value, sizeof value);
  return value;
}

std::byte* DeviceMemory::at(std::size_t offset) const { return std::bit_cast<std::byte*>(address_ + offset); }

Buffer DeviceMemory::floats() const {
  return Buffer(at(0), bytes_ / sizeof(float), DataType::float32, Memory::cuda(device_->number()));
}

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

// If the call is in place, one memory holds both buffers.
void perform_on_device(Communicator& comm, const CollectiveCase& test, const CaseCall& call) {
  const auto* const in = static_cast<const std::byte*>(call.in.data);
  auto* const out = static_cast<std::byte*>(call.out.data);
  const std::size_t in_bytes = call.in.bytes(), out_bytes = call.out.bytes();
  const bool apart = in_bytes == 0 || out_bytes == 0 || in + in_bytes <= out || out + out_bytes <= in;
  const std::byte* const base = std::min<const std::byte*>(in, out);
  const auto offset = [&](const std::byte* of) { return static_cast<std::size_t>(of - base); };
  DeviceMemory first(comm.rank(),
                     apart ? in_bytes : std::max(offset(in) + in_bytes, offset(out) + out_bytes));
  DeviceMemory second(comm.rank(), apart ? out_bytes : 0);
  DeviceMemory& holds_out = apart ? second : first;
  const std::size_t in_at = apart ? 0 : offset(in), out_at = apart ? 0 : offset(out);
  first.write(in, in_bytes, in_at);
  holds_out.write(out, out_bytes, out_at);
  CaseCall there = call;
  there.in.data = first.at(in_at);
  there.out.data = holds_out.at(out_at);
  there.in.memory = there.out.memory = Memory::cuda(comm.rank());
  perform(comm, test, there);
  holds_out.read(out, out_bytes, out_at);
  if (apart) first.read(const_cast<std::byte*>(in), in_bytes, in_at);
}

void NcclWorld::SetUp() {
  fake_cuda_reset(16);
  fake_nccl_reset();
}

void NcclWorld::TearDown() {
  EXPECT_EQ(fake_nccl().communicators, 0);
  EXPECT_EQ(fake_nccl().registrations, 0);
  EXPECT_EQ(fake_nccl().operations, 0);
  const FakeCudaCounts counts = fake_cuda_counts();
  EXPECT_EQ(counts.streams, 0);
  EXPECT_EQ(counts.events, 0);
  EXPECT_EQ(counts.device_bytes, 0u);
}

std::vector<std::unique_ptr<Offload>> NcclWorld::offloads() {
  std::vector<std::unique_ptr<Offload>> only;
  only.push_back(nccl::create({.cuda_library = TUTTI_FAKE_CUDA, .nccl_library = TUTTI_FAKE_NCCL}).take());
  return only;
}

ClusterOptions NcclWorld::options(std::chrono::nanoseconds timeout) {
  return {.timeout = timeout, .offloads = [](int) { return offloads(); }};
}

Status sum_on_device(Communicator& comm, DeviceMemory& memory, const CallOptions& options) {
  return outcome(comm.all_reduce(memory.floats(), ReduceOp::sum, options));
}

}  // namespace tutti::test
