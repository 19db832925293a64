// Computes while data travels. all_reduce returns a Work at once, and the operation runs in the
// background. The program waits for the Work later. It computes eight blocks one after another. The
// all_reduce of each block starts as soon as the block is ready, and runs while the next block is
// being computed.
//
//   tutti run -n 4 -- 04_async_overlap
#include <atomic>
#include <cmath>
#include <exception>
#include <iostream>
#include <vector>

#include "common/options.h"
#include "common/print.h"

namespace {

constexpr int blocks = 8;
constexpr int block_size = 100'000;

// `finished` counts the sums that have finished. It is atomic, because a callback may run on another thread.
std::atomic<int> finished{0};

void compute(std::vector<double>& block, int number, int rank) {
  for (int i = 0; i < block_size; ++i)
    block[i] = rank + number + std::pow(std::sin(i), 2) + std::pow(std::cos(i), 2);
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options(argc, argv);
  // A buffer must live until its operation has ended. The buffers here are made before the communicator, so
  // they outlive it.
  std::vector<std::vector<double>> data(blocks, std::vector<double>(block_size));
  tutti::Communicator comm = tutti::init(options.init);

  std::vector<tutti::Work> in_flight;
  for (int number = 0; number < blocks; ++number) {
    compute(data[number], number, comm.rank());
    tutti::Work work = comm.all_reduce(data[number], tutti::ReduceOp::sum);
    // The callback runs once when the operation has ended, whether it succeeded or not.
    work.then([](const tutti::Status& status) { finished += status.ok() ? 1 : 0; });
    in_flight.push_back(work);
  }
  if (comm.rank() == 0)
    print("computed all ", blocks, " blocks; ", finished, " had already been added up meanwhile");

  // wait() throws if the operation failed. The result may be read after wait() has returned.
  for (tutti::Work& work : in_flight) work.wait();

  const double size = comm.size();
  for (int number = 0; number < blocks; ++number) {
    const double expected = size * (size - 1) / 2 + size * (number + 1);  // sin(i)^2 + cos(i)^2 is 1
    for (const double value : data[number]) {
      if (std::abs(value - expected) > 1e-6)
        throw std::runtime_error("wrong sum in block " + std::to_string(number));
    }
  }
  if (comm.rank() == 0) print("all ", blocks, " sums are right");
  return 0;
} catch (const std::exception& error) {
  std::cerr << "04_async_overlap: " << error.what() << std::endl;
  return 1;
}
