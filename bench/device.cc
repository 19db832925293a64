// Measures all_reduces on the memory of CUDA devices. Each rank of a job runs this program: `device
// [LIBRARY [LARGEST]]`. LIBRARY is one of these, by default `nccl`:
// - nccl: compares tutti over NCCL with NCCL itself, called directly.
// - staged: compares a staged call with its parts, which are an all_reduce on host memory and copies between
//   the host and the device. TUTTI_TRANSPORTS must not name nccl.
//
// LARGEST is the largest size in bytes. The methods take turns in each round. Rank 0 prints a line of JSON
// for each comparison, with the microseconds per call of each method, by round. With nccl, it also prints a
// line with NCCL's version. tests/gpu/run.py evaluates them.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include <tutti/tutti.h>

#include "tests/support/device_memory.h"
#include "transport/nccl/api.h"

namespace {

using tutti::Buffer;
using tutti::Communicator;
using tutti::DataType;
using tutti::ReduceOp;
using tutti::test::DeviceMemory;
using Clock = std::chrono::steady_clock;

constexpr std::size_t sizes[] = {8, 1 << 10, 64 << 10, 1 << 20, 64 << 20};
constexpr int least_rounds = 3;
constexpr int most_rounds = 10;
constexpr double enough_us = 10'000'000;  // for all rounds of a comparison
constexpr double batch_us = 20'000;
constexpr int in_a_row = 8;
constexpr std::size_t largest_in_a_row = 1 << 20;

std::string named(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

void check(const tutti::Status& status) {
  if (!status.ok()) throw tutti::Error(status);
}

// `RawNccl` is a communicator of NCCL that is used without tutti.
class RawNccl {
 public:
  RawNccl(Communicator& comm, const DeviceMemory& memory)
      : api_(tutti::nccl::load(named("TUTTI_NCCL_LIBRARY")).take()) {
    tutti::nccl::UniqueId id{};
    if (comm.rank() == 0) check(api_.GetUniqueId(&id), "ncclGetUniqueId");
    comm.broadcast(Buffer(id.bytes, sizeof id.bytes, DataType::uint8), 0).wait();
    tutti::nccl::Config config;
    config.blocking = 1;
    const tutti::cuda::Device::Current current(memory.device());
    check(api_.CommInitRankConfig(&comm_, comm.size(), id, comm.rank(), &config), "ncclCommInitRankConfig");
  }
  ~RawNccl() { api_.CommAbort(comm_); }
  RawNccl(const RawNccl&) = delete;
  RawNccl& operator=(const RawNccl&) = delete;

  std::string version() const { return tutti::nccl::to_string(api_.version); }
  // Adds floats in place.
  void all_reduce(void* data, std::size_t count, tutti::cuda::StreamHandle stream) const {
    check(api_.AllReduce(data, data, count, tutti::nccl::float32, tutti::nccl::sum, comm_, stream),
          "ncclAllReduce");
  }

 private:
  void check(tutti::nccl::Outcome outcome, const char* attempt) const {
    ::check(tutti::nccl::status_of(api_, outcome, attempt, comm_));
  }

  const tutti::nccl::Api api_;
  tutti::nccl::Comm comm_ = nullptr;
};

// A `Method` is one way to do something `calls` times.
struct Method {
  std::string name;
  std::function<void()> run;
  int calls = 1;
  std::vector<double> us = {};  // per call, by round
};

// Returns how long the slowest rank takes for `times` runs, in microseconds.
double time(Communicator& comm, const Method& method, int times) {
  comm.barrier().wait();
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < times; ++i) method.run();
  std::array<double, 1> us = {std::chrono::duration<double, std::micro>(Clock::now() - begin).count()};
  comm.all_reduce(us, ReduceOp::max).wait();
  return us[0];
}

void compare(Communicator& comm, const char* what, std::size_t bytes, std::vector<Method> methods) {
  for (Method& method : methods) method.run();  // the first call makes the connections
  double spent_us = 0;                          // equal on all ranks
  for (int round = 0; round < most_rounds && (round < least_rounds || spent_us < enough_us); ++round) {
    for (Method& method : methods) {
      const double once = time(comm, method, 1);
      const int times = static_cast<int>(std::clamp(batch_us / once, 1.0, 1000.0));
      const double all = times == 1 ? once : time(comm, method, times);
      method.us.push_back(all / times / method.calls);
      spent_us += once + all;
    }
  }
  if (comm.rank() != 0) return;
  std::printf(R"({"what": "%s", "bytes": %zu, "ranks": %d, "us": {)", what, bytes, comm.size());
  for (const Method& method : methods) {
    std::printf(R"(%s"%s": [)", &method == &methods.front() ? "" : ", ", method.name.c_str());
    for (const double& us : method.us) std::printf("%s%.3f", &us == &method.us.front() ? "" : ", ", us);
    std::printf("]");
  }
  std::printf("}}\n");
  std::fflush(stdout);
}

// `Measured` holds the device memory for this rank's calls.
class Measured {
 public:
  Measured(const tutti::cuda::Api& api, int device, std::size_t bytes)
      : api_(api), memory_(api, device, bytes), bytes_(bytes), stream_([&] {
          const tutti::cuda::Device::Current current(memory_.device());
          return tutti::cuda::Stream::create(memory_.device()).take();
        }()) {}
  ~Measured() {
    const tutti::cuda::Device::Current current(memory_.device());
    stream_.reset();
  }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

  const DeviceMemory& memory() const { return memory_; }
  tutti::cuda::StreamHandle stream() const { return stream_->handle(); }
  std::size_t count() const { return bytes_ / sizeof(float); }
  Buffer buffer() const { return {memory_.data(), count(), DataType::float32, memory_.memory()}; }
  void synchronise() const {
    check(tutti::cuda::status_of(api_, api_.StreamSynchronize(stream()), "cuStreamSynchronize"));
  }
  // Checks that a method adds the ranks' elements. Then sets all elements to zero, so that all further sums
  // are zero, too.
  void verify(const Communicator& comm, const std::function<void()>& add) const {
    std::vector<float> values(count(), 1);
    memory_.write(0, std::as_bytes(std::span(values)));
    add();
    memory_.read(0, std::as_writable_bytes(std::span(values)));
    const auto right = [&](float value) { return value == static_cast<float>(comm.size()); };
    if (!std::ranges::all_of(values, right))
      throw tutti::Error(tutti::Status(tutti::Code::internal, "a sum is wrong"));
    std::ranges::fill(values, 0);
    memory_.write(0, std::as_bytes(std::span(values)));
  }

 private:
  const tutti::cuda::Api& api_;
  const DeviceMemory memory_;
  const std::size_t bytes_;
  std::unique_ptr<tutti::cuda::Stream> stream_;
};

void compare_with_nccl(Communicator& comm, const RawNccl& raw, const Measured& measured) {
  const tutti::cuda::Device::Current current(measured.memory().device());
  const auto raw_call = [&] {
    raw.all_reduce(measured.memory().data(), measured.count(), measured.stream());
  };
  const auto raw_alone = [&] {
    raw_call();
    measured.synchronise();
  };
  const auto alone = [&] { comm.all_reduce(measured.buffer(), ReduceOp::sum).wait(); };
  const auto raw_row = [&] {
    for (int i = 0; i < in_a_row; ++i) raw_call();
    measured.synchronise();
  };
  const auto row = [&] {
    std::vector<tutti::Work> works;
    for (int i = 0; i < in_a_row; ++i)
      works.push_back(comm.all_reduce(measured.buffer(), ReduceOp::sum, {.stream = measured.stream()}));
    for (tutti::Work& work : works) work.wait();
  };
  measured.verify(comm, alone);
  measured.verify(comm, raw_alone);
  const std::size_t bytes = measured.count() * sizeof(float);
  compare(comm, "one call", bytes, {{"nccl", raw_alone}, {"tutti", alone}});
  if (bytes > largest_in_a_row) return;
  compare(comm, "calls in a row", bytes, {{"nccl", raw_row, in_a_row}, {"tutti", row, in_a_row}});
}

void compare_with_parts(Communicator& comm, const tutti::cuda::Api& api, const Measured& measured) {
  const tutti::cuda::Device::Current current(measured.memory().device());
  const std::size_t bytes = measured.count() * sizeof(float);
  const auto pinned = tutti::cuda::PinnedMemory::create(measured.memory().device(), bytes).take();
  const auto there = std::bit_cast<tutti::cuda::Address>(measured.memory().data());
  std::vector<float> values(measured.count());
  const auto copy = [&](tutti::cuda::Address to, tutti::cuda::Address from) {
    const tutti::cuda::Outcome outcome = api.MemcpyAsync(to, from, bytes, measured.stream());
    check(tutti::cuda::status_of(api, outcome, "cuMemcpyAsync"));
    measured.synchronise();
  };
  const auto staged = [&] { comm.all_reduce(measured.buffer(), ReduceOp::sum).wait(); };
  measured.verify(comm, staged);
  compare(comm, "staged", bytes,
          {{"tutti", staged},
           {"on the host", [&] { comm.all_reduce(values, ReduceOp::sum).wait(); }},
           {"copy to the host", [&] { copy(pinned->address(), there); }},
           {"copy to the device", [&] { copy(there, pinned->address()); }}});
}

void run(const std::string& library, std::size_t largest) {
  const tutti::cuda::Api& api = *tutti::cuda::load(named("TUTTI_CUDA_LIBRARY")).take();
  const int devices = tutti::test::count_devices(api);
  Communicator comm = tutti::init();
  const int device = comm.rank() % devices;
  const DeviceMemory first(api, device, sizes[0]);
  if (library == "nccl") {
    const RawNccl raw(comm, first);
    if (comm.rank() == 0) std::printf("{\"nccl\": \"%s\"}\n", raw.version().c_str());
    for (const std::size_t bytes : sizes) {
      if (bytes <= largest) compare_with_nccl(comm, raw, Measured(api, device, bytes));
    }
    comm.barrier().wait();
  } else {
    for (const std::size_t bytes : sizes) {
      if (bytes >= 1 << 20 && bytes <= largest) compare_with_parts(comm, api, Measured(api, device, bytes));
    }
  }
}

}  // namespace

int main(int count, char** words) {
  // NCCL lets ranks share a device only if it believes that they run on different hosts.
  setenv("NCCL_HOSTID", std::to_string(getpid()).c_str(), 0);
  try {
    run(count > 1 ? words[1] : "nccl", count > 2 ? std::stoull(words[2]) : sizes[4]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
