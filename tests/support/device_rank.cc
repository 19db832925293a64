// This is a program for ranks whose buffers are in the memory of the fake CUDA: `device_rank MODE`. Each rank
// uses the device whose number is its rank.
//   sum   an all_reduce of ones; prints "sum VALUE"
//   loop  one all_reduce after the other until one fails; then the survivors call shrink and print
//         "shrunk SIZE 0 0" and "sum VALUE"
// Prints "ready" after the first all_reduce. A failure makes it print "failed NANOSECONDS CODE MESSAGE", with
// the time on the monotonic clock.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <tutti/tutti.h>

#include "tests/support/device_array.h"

namespace {

using Array = tutti::test::DeviceArray<float>;

constexpr std::size_t elements = 100'000;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void tell(const tutti::Error& error) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  say("failed " + std::to_string(now) + " " + std::string(to_string(error.code())) + " " +
      error.status().message());
}

void sum(tutti::Communicator& comm, const Array& array) {
  comm.all_reduce(array.buffer(), tutti::ReduceOp::sum).wait();
}

void say_sum(tutti::Communicator& comm, Array& array) {
  array.set(std::vector<float>(elements, 1));
  sum(comm, array);
  say("sum " + std::to_string(static_cast<int>(array.view().back())));
}

void loop(tutti::Communicator& comm, Array& array) {
  try {
    for (;;) sum(comm, array);
  } catch (const tutti::Error& error) {
    tell(error);
  }
  tutti::Shrunk shrunk = comm.shrink();
  say("shrunk " + std::to_string(shrunk.communicator.size()) + " 0 0");
  say_sum(shrunk.communicator, array);
}

}  // namespace

int main(int, char** words) {
  try {
    tutti::Communicator comm = tutti::init();
    fake_cuda_reset(comm.size());
    Array array(comm.rank(), std::vector<float>(elements, 0));
    sum(comm, array);
    say("ready");
    if (words[1] == std::string("loop")) {
      loop(comm, array);
    } else {
      say_sum(comm, array);
    }
  } catch (const tutti::Error& error) {
    tell(error);
    return 1;
  }
}
