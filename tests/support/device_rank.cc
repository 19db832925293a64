// This is a program for ranks whose buffers are in memory of CUDA devices: `device_rank MODE [DRIVER]`. Rank
// R uses device R modulo the number of devices. DRIVER is the file of the CUDA driver that the program itself
// calls. After a first all_reduce, the program prints "ready". The mode decides what follows:
//   sum          makes an all_reduce of ones; prints "sum VALUE"
//   loop         makes one all_reduce after the other until one fails; the survivors then call shrink and
//                print "shrunk SIZE 0 0" and "sum VALUE"
//   kinds        calls every collective with float32 and `sum`; prints "right COUNT", or what is wrong
//   collectives  calls the cases of `paired_matrix` whose results are exact, and each collective with a large
//                vector; prints the same as `kinds`
//   messages     passes messages from each rank to the next, from and to the device and the host; prints
//   "right
//                COUNT", or what is wrong
// If a call fails, the program prints "failed NANOSECONDS CODE MESSAGE", with the time on the monotonic
// clock.
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include <tutti/tutti.h>

#include "tests/support/collective_case.h"
#include "tests/support/device_memory.h"

namespace {

using tutti::CollectiveKind;
using tutti::DataType;
using tutti::ReduceOp;
using tutti::test::CaseCall;
using tutti::test::CollectiveCase;
using tutti::test::DeviceMemory;

constexpr std::size_t elements = 100'000;
constexpr std::size_t large_count = 300'001;  // makes several pieces of a staged call

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void tell(const tutti::Error& error) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  say("failed " + std::to_string(now) + " " + std::string(to_string(error.code())) + " " +
      error.status().message());
}

// `Ones` is an array of ones in the memory of a device.
class Ones {
 public:
  Ones(const tutti::cuda::Api& api, int device) : memory_(api, device, elements * sizeof(float)) { reset(); }
  void reset() {
    const std::vector<float> ones(elements, 1);
    memory_.write(0, std::as_bytes(std::span(ones)));
  }
  void sum(tutti::Communicator& comm) {
    const tutti::Buffer buffer(memory_.data(), elements, DataType::float32, memory_.memory());
    comm.all_reduce(buffer, ReduceOp::sum).wait();
  }
  int last() const {
    float value = 0;
    memory_.read((elements - 1) * sizeof value, std::as_writable_bytes(std::span(&value, 1)));
    return static_cast<int>(value);
  }

 private:
  const DeviceMemory memory_;
};

void say_sum(tutti::Communicator& comm, Ones& ones) {
  ones.reset();
  ones.sum(comm);
  say("sum " + std::to_string(ones.last()));
}

void loop(tutti::Communicator& comm, Ones& ones) {
  try {
    for (;;) ones.sum(comm);
  } catch (const tutti::Error& error) {
    tell(error);
  }
  tutti::Shrunk shrunk = comm.shrink();
  say("shrunk " + std::to_string(shrunk.communicator.size()) + " 0 0");
  say_sum(shrunk.communicator, ones);
}

// A `Mirror` carries out the calls of cases in the memory of a device. The device has a copy of the
// host's memory for cases, including the guard bytes. So a write beyond a buffer of the device is
// also noticed.
class Mirror {
 public:
  Mirror(const tutti::cuda::Api& api, int device, std::size_t bytes)
      : host_(2 * bytes), device_(api, device, 2 * bytes) {}
  tutti::test::CaseMemory host() {
    const std::span<std::byte> all(host_);
    return {all.first(all.size() / 2), all.last(all.size() / 2)};
  }
  void perform(tutti::Communicator& comm, const CollectiveCase& test, const CaseCall& call) {
    CaseCall there = call;
    there.in.data = on_device(call.in.data);
    there.out.data = on_device(call.out.data);
    there.in.memory = there.out.memory = device_.memory();
    const std::span<std::byte> in = guarded(call.in.data, call.in.bytes());
    const std::span<std::byte> out = guarded(call.out.data, call.out.bytes());
    for (const std::span<std::byte> part : {in, out}) device_.write(offset(part.data()), part);
    tutti::test::perform(comm, test, there);
    for (const std::span<std::byte> part : {in, out}) device_.read(offset(part.data()), part);
  }

 private:
  std::size_t offset(const void* address) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - host_.data());
  }
  std::byte* on_device(const void* address) const {
    return std::bit_cast<std::byte*>(std::bit_cast<tutti::cuda::Address>(device_.data()) + offset(address));
  }
  std::span<std::byte> guarded(const void* address, std::size_t bytes) {
    return std::span(host_).subspan(offset(address) - tutti::test::case_guard,
                                    bytes + 2 * tutti::test::case_guard);
  }

  std::vector<std::byte> host_;
  const DeviceMemory device_;
};

// Returns whether the case's result is exact. NCCL multiplies floating-point numbers by 1/p before it adds
// them, so its average over p ranks is exact only for some p.
bool is_exact(const CollectiveCase& test, int size) {
  return test.op.kind() != ReduceOp::Kind::avg || !tutti::is_floating(test.type) || (size & (size - 1)) == 0;
}

std::vector<CollectiveCase> cases_for(bool all, int size) {
  std::vector<CollectiveCase> cases =
      all ? tutti::test::paired_matrix(size) : tutti::test::collective_matrix(size);
  const auto is_plain = [](const CollectiveCase& test) {
    return test.type == DataType::float32 && test.op.kind() == ReduceOp::Kind::sum;
  };
  std::erase_if(cases, [&](const auto& test) { return all ? !is_exact(test, size) : !is_plain(test); });
  for (int kind = 0; all && kind < tutti::collective_kind_count; ++kind) {
    CollectiveCase large{.kind = static_cast<CollectiveKind>(kind), .count = large_count};
    if (large.kind != CollectiveKind::send && large.kind != CollectiveKind::recv) cases.push_back(large);
  }
  return cases;
}

int check_collectives(tutti::Communicator& comm, const tutti::cuda::Api& api, int device, bool all) {
  const auto size = static_cast<std::size_t>(comm.size());
  Mirror mirror(api, device, large_count * sizeof(float) * size + 2 * tutti::test::case_guard);
  const auto perform = [&](tutti::Communicator& on, const CollectiveCase& test, const CaseCall& call) {
    mirror.perform(on, test, call);
  };
  const std::vector<CollectiveCase> cases = cases_for(all, comm.size());
  for (const CollectiveCase& test : cases) {
    const std::string wrong = tutti::test::run_case(comm, test, mirror.host(), perform);
    if (wrong.empty()) continue;
    say(wrong);
    return 1;
  }
  say("right " + std::to_string(cases.size()));
  return 0;
}

// Passes a message of `count` elements from each rank to the next. Returns whether the right elements have
// arrived. The memory of both ends is the device's or the host's.
bool pass_on(tutti::Communicator& comm, const tutti::cuda::Api& api, int device, std::size_t count,
             bool from_there, bool to_there) {
  const int size = comm.size(), next = (comm.rank() + 1) % size, previous = (comm.rank() + size - 1) % size;
  const auto elements_of = [count](int rank) {
    std::vector<int> all(count);
    std::iota(all.begin(), all.end(), 1000 * rank);
    return all;
  };
  std::vector<int> given = elements_of(comm.rank()), taken(count, -1);
  const DeviceMemory out(api, device, count * sizeof(int)), in(api, device, count * sizeof(int));
  out.write(0, std::as_bytes(std::span(given)));
  in.write(0, std::as_bytes(std::span(taken)));
  const tutti::Buffer to = to_there ? tutti::Buffer(in.data(), count, DataType::int32, in.memory()) : taken;
  const tutti::Buffer from =
      from_there ? tutti::Buffer(out.data(), count, DataType::int32, out.memory()) : given;
  tutti::Work receive = comm.recv(to, previous, 5);
  comm.send(from, next, 5).wait();
  receive.wait();
  if (to_there) in.read(0, std::as_writable_bytes(std::span(taken)));
  return taken == elements_of(previous);
}

int check_messages(tutti::Communicator& comm, const tutti::cuda::Api& api, int device) {
  int right = 0;
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, large_count, 7 * large_count}) {
    for (const bool from_there : {true, false}) {
      for (const bool to_there : {true, false}) {
        if (!pass_on(comm, api, device, count, from_there, to_there)) {
          say("wrong elements in a message of " + std::to_string(count));
          return 1;
        }
        ++right;
      }
    }
  }
  say("right " + std::to_string(right));
  return 0;
}

int work(tutti::Communicator& comm, const std::string& mode, const tutti::cuda::Api& api, int device) {
  Ones ones(api, device);
  ones.sum(comm);
  say("ready");
  if (mode == "kinds" || mode == "collectives")
    return check_collectives(comm, api, device, mode == "collectives");
  if (mode == "messages") return check_messages(comm, api, device);
  if (mode == "loop") {
    loop(comm, ones);
  } else {
    say_sum(comm, ones);
  }
  return 0;
}

// Catches exceptions while the communicator still exists. Otherwise an exception would destroy the
// communicator, and the other ranks would learn only that this rank has left.
int run(const std::string& mode, const tutti::cuda::Api& api) {
  // CUDA must be initialized before NCCL, since NCCL would otherwise have no reductions of fp8.
  const int devices = tutti::test::count_devices(api);
  tutti::Communicator comm = tutti::init();
  try {
    return work(comm, mode, api, comm.rank() % devices);
  } catch (const tutti::Error& error) {
    tell(error);
    return 1;
  }
}

}  // namespace

int main(int count, char** words) {
  // NCCL lets ranks share a device only if it believes that they run on different hosts.
  setenv("NCCL_HOSTID", std::to_string(getpid()).c_str(), 0);
  try {
    const auto driver = tutti::cuda::load(count > 2 ? words[2] : "");
    if (!driver.ok()) throw tutti::Error(driver.status());
    return run(words[1], **driver);
  } catch (const tutti::Error& error) {
    tell(error);
  } catch (const std::exception& error) {
    say(error.what());
  }
  return 1;
}
