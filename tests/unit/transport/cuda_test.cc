// Tests tutti's use of the CUDA driver (transport/cuda), with the fake driver of
// tests/support/fake_cuda.h.
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/fake_cuda.h"
#include "transport/cuda/api.h"
#include "transport/cuda/device.h"
#include "transport/cuda/device_memory.h"
#include "transport/cuda/word.h"

namespace tutti::cuda {
namespace {

class CudaTest : public testing::Test {
 protected:
  CudaTest() { fake_cuda_reset(2); }
  // Some pinned memory and one context may remain at the end, since a `Word` never frees its memory and never
  // releases its device's context.
  ~CudaTest() override {
    const FakeCudaCounts left = fake_cuda_counts();
    EXPECT_EQ(left.streams + left.events, 0);
    EXPECT_LE(left.contexts, 1);
    EXPECT_EQ(left.device_bytes, 0u);
    EXPECT_EQ(left.pinned_bytes % Word::page_bytes, 0u);
  }
  static const Api& api() { return **load(TUTTI_FAKE_CUDA); }
  static std::unique_ptr<Device> open(int number = 0) { return Device::open(api(), number).take(); }
};

// Waits until an event has happened.
void await(const Event& event) {
  while (!event.happened().take()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(CudaTest, MissingLibraryIsUnsupported) {
  const auto driver = load("/no/such/libcuda.so.1");
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), Code::unsupported);
  EXPECT_NE(driver.status().message().find("/no/such/libcuda.so.1"), std::string::npos);
}

TEST_F(CudaTest, LibraryWithoutAFunctionIsUnsupported) {
  const auto driver = load("libm.so.6");
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), Code::unsupported);
  EXPECT_EQ(driver.status().message(),
            "libm.so.6 has no function cuInit; tutti needs the driver of CUDA 11.7 or later");
}

TEST_F(CudaTest, LoadingDoesNotInitialize) {
  int version = 0;
  ASSERT_EQ(api().DriverGetVersion(&version), success);
  EXPECT_EQ(version, 13000);
  EXPECT_FALSE(fake_cuda_is_initialized());
  open();
  EXPECT_TRUE(fake_cuda_is_initialized());
  EXPECT_EQ(&api(), *load(TUTTI_FAKE_CUDA));
}

TEST_F(CudaTest, NoDeviceIsUnsupported) {
  fake_cuda_reset(0);
  const auto device = Device::open(api(), 0);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), Code::unsupported);
  EXPECT_EQ(device.status().message(), "cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)");
}

TEST_F(CudaTest, UnknownDeviceIsAnInvalidArgument) {
  for (const int number : {2, -1}) {
    const auto device = Device::open(api(), number);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.status().code(), Code::invalid_argument);
    EXPECT_EQ(device.status().message(),
              "there is no CUDA device " + std::to_string(number) + ": the driver finds 2");
  }
}

TEST_F(CudaTest, DevicesHaveIdentities) {
  EXPECT_EQ(*open(0)->bus_address(), "0000:00:00.0");
  EXPECT_EQ(*open(1)->bus_address(), "0000:01:00.0");
  EXPECT_EQ(open(1)->number(), 1);
}

TEST_F(CudaTest, ErrorsAreInWords) {
  EXPECT_TRUE(status_of(api(), success, "cuEventQuery").ok());
  EXPECT_EQ(status_of(api(), 700, "cuEventQuery").message(),
            "cuEventQuery: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
  EXPECT_EQ(status_of(api(), 12345, "cuInit").message(), "cuInit: unknown error (no description)");
  fake_cuda_fail("cuDevicePrimaryCtxRetain", 1, 2);
  EXPECT_EQ(Device::open(api(), 1).status().message(),
            "CUDA device 1: cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
}

TEST_F(CudaTest, CreationFailsWithWhatWasAttempted) {
  const auto device = open();
  const Device::Current current(*device);
  fake_cuda_fail("cuStreamCreate", 1, 2);
  EXPECT_NE(Stream::create(*device).status().message().find("cuStreamCreate"), std::string::npos);
  fake_cuda_fail("cuEventCreate", 1, 2);
  EXPECT_NE(Event::create(*device).status().message().find("cuEventCreate"), std::string::npos);
  for (const char* const function : {"cuMemHostAlloc", "cuMemHostGetDevicePointer_v2"}) {
    fake_cuda_fail(function, 1, 2);
    EXPECT_EQ(PinnedMemory::create(*device, 64).status().code(), Code::resource_exhausted) << function;
  }
}

TEST_F(CudaTest, MemoryIsZeroedAndFreed) {
  const auto memory = DeviceMemory::allocate(api(), 1, 1000).take();
  EXPECT_FALSE(memory->registered());
  const auto* const here =
      static_cast<const char*>(fake_cuda_host_address(std::bit_cast<Address>(memory->data()), 1000));
  EXPECT_EQ(std::string(here, 1000), std::string(1000, '\0'));
  EXPECT_EQ(fake_cuda_counts().device_bytes, 1000u);
}

TEST_F(CudaTest, MemoryThatCannotBeMadeLeavesNothingBehind) {
  for (const char* const function : {"cuMemAlloc_v2", "cuStreamCreate", "cuMemsetD8Async"}) {
    fake_cuda_fail(function, 1, out_of_memory);
    const auto memory = DeviceMemory::allocate(api(), 0, 1000);
    ASSERT_FALSE(memory.ok()) << function;
    EXPECT_EQ(memory.status().code(), Code::resource_exhausted) << function;
    EXPECT_EQ(fake_cuda_counts().device_bytes, 0u);
  }
}

TEST_F(CudaTest, CopiesGoThroughTheDevice) {
  const auto device = open();
  const Device::Current current(*device);
  const auto stream = Stream::create(*device).take();
  const auto event = Event::create(*device).take();
  const auto pinned = PinnedMemory::create(*device, 2000).take();
  Address there = 0;
  ASSERT_EQ(cuMemAlloc_v2(&there, 1000), success);
  for (int i = 0; i < 1000; ++i) pinned->data()[i] = static_cast<std::byte>(i);
  ASSERT_EQ(api().MemcpyAsync(there, pinned->address(), 1000, stream->handle()), success);
  ASSERT_EQ(api().MemcpyAsync(pinned->address() + 1000, there, 1000, stream->handle()), success);
  ASSERT_TRUE(event->record(stream->handle()).ok());
  await(*event);
  EXPECT_EQ(std::memcmp(pinned->data(), pinned->data() + 1000, 1000), 0);
  EXPECT_EQ(std::memcmp(pinned->data(), fake_cuda_host_address(there, 1000), 1000), 0);
  EXPECT_EQ(fake_cuda_counts().host_synchronisations, 0);
  EXPECT_NE(api().MemcpyAsync(there, pinned->address(), 1001, stream->handle()), success);
  ASSERT_EQ(cuMemFree_v2(there), success);
}

TEST_F(CudaTest, StreamsWaitForEvents) {
  const auto device = open();
  const Device::Current current(*device);
  const auto first = Stream::create(*device).take();
  const auto second = Stream::create(*device).take();
  const auto between = Event::create(*device).take();
  const auto end = Event::create(*device).take();
  EXPECT_TRUE(between->happened().take()) << "an event that was not recorded has happened";
  std::atomic<bool> may_go{false};
  const auto block = [](void* flag) {
    while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
  };
  ASSERT_EQ(cuLaunchHostFunc(first->handle(), block, &may_go), success);
  ASSERT_TRUE(between->record(first->handle()).ok());
  ASSERT_TRUE(between->hold(second->handle()).ok());
  ASSERT_TRUE(end->record(second->handle()).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(end->happened().take());
  may_go = true;
  await(*end);
  EXPECT_TRUE(between->happened().take());
}

TEST_F(CudaTest, StreamsWaitForWords) {
  const auto device = open();
  const Device::Current current(*device);
  const auto stream = Stream::create(*device).take();
  const auto end = Event::create(*device).take();
  auto word = Word::take(*device).take();
  const std::uint32_t first = word->value();
  ASSERT_TRUE(word->hold(stream->handle(), first).ok());
  ASSERT_TRUE(word->hold(stream->handle(), first + 2).ok());
  ASSERT_TRUE(end->record(stream->handle()).ok());
  word->advance();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(end->happened().take());
  word->advance();
  await(*end);
}

// The context of a stream need not be current when the stream is told to wait.
TEST_F(CudaTest, StreamsOfOtherDevicesWait) {
  const auto device = open(0);
  const auto other = open(1);
  const auto outer = std::make_unique<Device::Current>(*other);
  const auto stream = Stream::create(*other).take();
  const auto end = Event::create(*other).take();
  const Device::Current current(*device);
  const auto first = Stream::create(*device).take();
  const auto event = Event::create(*device).take();
  const auto word = Word::take(*device).take();
  ASSERT_TRUE(word->hold(first->handle(), word->value() + 1).ok());
  ASSERT_TRUE(event->record(first->handle()).ok());
  ASSERT_TRUE(event->hold(stream->handle()).ok());
  const Status held = word->hold(stream->handle(), word->value() + 2);
  ASSERT_TRUE(held.ok()) << held.to_string();
  ASSERT_TRUE(end->record(stream->handle()).ok());
  EXPECT_EQ(event->record(stream->handle()).code(), Code::aborted);
  word->advance();
  await(*event);
  EXPECT_FALSE(end->happened().take());
  word->advance();
  await(*end);
  EXPECT_EQ(word->hold(std::bit_cast<StreamHandle>(&held), 0).code(), Code::invalid_argument);
  Ordinal found = -1;
  ASSERT_EQ(cuCtxGetDevice(&found), success);
  EXPECT_EQ(found, 0);
}

// A stream may still wait for a `Word` that is destroyed. The next `Word` in the same place lets
// the stream continue.
TEST_F(CudaTest, WordsContinueWhereOthersEnded) {
  const auto device = open();
  const Device::Current current(*device);
  auto word = Word::take(*device).take();
  word->advance();
  const std::uint32_t last = word->value();
  const std::size_t pinned = fake_cuda_counts().pinned_bytes;
  word.reset();
  word = Word::take(*device).take();
  EXPECT_EQ(word->value(), last);
  EXPECT_EQ(fake_cuda_counts().pinned_bytes, pinned);
  std::vector<std::unique_ptr<Word>> more;
  for (int i = 0; i < 2000; ++i) more.push_back(Word::take(*device).take());
  for (const auto& each : more) EXPECT_EQ(each->value(), 0u);
}

TEST_F(CudaTest, StreamsThatAreCapturedAreRefused) {
  const auto device = open();
  const Device::Current current(*device);
  const auto stream = Stream::create(*device).take();
  CUgraph_st* graph = nullptr;
  EXPECT_TRUE(refuse_capture(api(), stream->handle()).ok());
  EXPECT_TRUE(refuse_capture(api(), nullptr).ok());
  ASSERT_EQ(cuStreamBeginCapture_v2(stream->handle(), 0), success);
  EXPECT_EQ(refuse_capture(api(), stream->handle()).code(), Code::unsupported);
  ASSERT_EQ(cuStreamEndCapture(stream->handle(), &graph), success) << "the capture should be valid";
  ASSERT_EQ(cuGraphDestroy(graph), success);
  fake_cuda_fail("cuStreamIsCapturing", 1, capture_implicit);
  EXPECT_EQ(refuse_capture(api(), nullptr).code(), Code::unsupported);
}

// An error of the device is no reason to refuse the stream, since the session reports that error to
// all ranks.
TEST_F(CudaTest, OnlyStreamsThatCannotBeFollowedAreRefused) {
  const auto device = open();
  const Device::Current current(*device);
  const auto stream = Stream::create(*device).take();
  const auto follow = [&](Outcome error) {
    fake_cuda_fail("cuStreamIsCapturing", 1, error);
    return can_follow(api(), stream->handle(), Memory::cuda(0)).code();
  };
  EXPECT_EQ(follow(invalid_handle), Code::invalid_argument);
  EXPECT_EQ(follow(capture_implicit), Code::unsupported);
  EXPECT_EQ(follow(700), Code::ok);
  EXPECT_TRUE(can_follow(api(), stream->handle(), Memory::cuda(0)).ok());
}

TEST_F(CudaTest, StreamsOfOtherDevicesAreRefused) {
  const auto device = open(1);
  const Device::Current current(*device);
  const auto stream = Stream::create(*device).take();
  const auto follow = [&](void* handle, int buffers) {
    return can_follow(api(), handle, Memory::cuda(buffers));
  };
  const Status refused = follow(stream->handle(), 0);
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_EQ(refused.message(),
            "the stream is of CUDA device 1, but the buffers are in memory of CUDA device 0");
  EXPECT_TRUE(follow(stream->handle(), 1).ok());
  auto* const default_stream = std::bit_cast<void*>(std::uintptr_t{1});
  for (const int buffers : {0, 1}) EXPECT_TRUE(follow(default_stream, buffers).ok());
  for (const char* const function : {"cuStreamGetCtx", "cuCtxGetDevice"}) {
    fake_cuda_fail(function, 1, 700);
    EXPECT_TRUE(follow(stream->handle(), 0).ok()) << function;
  }
  fake_cuda_fail("cuStreamGetCtx", 1, invalid_handle);
  EXPECT_EQ(follow(stream->handle(), 1).code(), Code::invalid_argument);
}

// If the context of the stream cannot be made current, the context of the buffers still is. It says nothing
// about the stream.
TEST_F(CudaTest, AStreamWhoseContextCannotBeUsedIsNotChecked) {
  const auto device = open(0), other = open(1);
  const Device::Current outside(*other);
  const auto stream = Stream::create(*other).take();
  const Device::Current current(*device);
  fake_cuda_fail("cuCtxPushCurrent_v2", 1, 700);
  EXPECT_EQ(device->check_stream(stream->handle()).message(),
            "cuCtxPushCurrent: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
  EXPECT_EQ(device->check_stream(stream->handle()).code(), Code::invalid_argument);
}

TEST_F(CudaTest, BrokenDeviceFailsEverything) {
  const auto device = open();
  const Device::Current current(*device);
  const auto stream = Stream::create(*device).take();
  const auto event = Event::create(*device).take();
  ASSERT_TRUE(event->record(stream->handle()).ok());
  fake_cuda_break(700);
  EXPECT_EQ(event->happened().status().message(),
            "cuEventQuery: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
  EXPECT_EQ(event->record(stream->handle()).code(), Code::aborted);
  EXPECT_EQ(Stream::create(*device).status().code(), Code::aborted);
  const Device::Current again(*device);
}

// A reset waits for destroyed streams. Otherwise their work would continue when the devices work
// again, in memory that may already be free.
TEST_F(CudaTest, AResetWaitsForWorkOnBrokenDevices) {
  const auto device = open();
  const Device::Current current(*device);
  struct Progress {
    std::atomic<bool> begun{false}, ended{false};
  } progress;
  {
    const auto stream = Stream::create(*device).take();
    const auto work = [](void* data) {
      auto* const of = static_cast<Progress*>(data);
      of->begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      of->ended = true;
    };
    ASSERT_EQ(cuLaunchHostFunc(stream->handle(), work, &progress), success);
    while (!progress.begun) std::this_thread::yield();
    fake_cuda_break(700);
  }
  fake_cuda_reset(2);
  EXPECT_TRUE(progress.ended);
}

// A query of an event is forbidden while another thread captures a stream in the global mode. Inside a
// `Current`, the query is allowed.
TEST_F(CudaTest, CurrentDoesNotDisturbCaptures) {
  const auto device = open();
  const auto outside = std::make_unique<Device::Current>(*device);
  const auto stream = Stream::create(*device).take();
  const auto event = Event::create(*device).take();
  int status = 0;
  CUgraph_st* graph = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream->handle(), 0), success);
  std::thread([&] {
    const Device::Current current(*device);
    EXPECT_TRUE(event->happened().ok());
  }).join();
  ASSERT_EQ(api().StreamIsCapturing(stream->handle(), &status), success);
  EXPECT_EQ(status, 1);
  std::thread([&] { EXPECT_FALSE(event->happened().ok()); }).join();
  ASSERT_EQ(api().StreamIsCapturing(stream->handle(), &status), success);
  EXPECT_EQ(status, 2) << "the capture should be invalid";
  EXPECT_NE(cuStreamEndCapture(stream->handle(), &graph), success);
}

TEST_F(CudaTest, CurrentIsForOneThread) {
  const auto device = open(1);
  Ordinal found = 0;
  EXPECT_NE(cuCtxGetDevice(&found), success);
  {
    const Device::Current current(*device);
    ASSERT_EQ(cuCtxGetDevice(&found), success);
    EXPECT_EQ(found, 1);
  }
  EXPECT_NE(cuCtxGetDevice(&found), success);
}

using CudaDeathTest = CudaTest;

TEST_F(CudaDeathTest, HostCannotTouchDeviceMemory) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto device = open();
  const Device::Current current(*device);
  Address there = 0;
  ASSERT_EQ(cuMemAlloc_v2(&there, 64), success);
  EXPECT_DEATH(*std::bit_cast<volatile int*>(there) = 1, "");
  ASSERT_EQ(cuMemFree_v2(there), success);
}

}  // namespace
}  // namespace tutti::cuda
