// Shares work between ranks. Rank 0 announces the task (broadcast), each rank does a part of it, and rank 0
// collects the parts (gather). The task is to compute pi. Pi is the area under the curve 4 / (1 + x * x)
// between 0 and 1. The program cuts this area into thin strips.
//
//   tutti run -n 4 -- 03_broadcast_gather
#include <array>
#include <cmath>
#include <cstdint>
#include <exception>
#include <iomanip>
#include <iostream>
#include <vector>

#include "common/options.h"
#include "common/print.h"

int main(int argc, char** argv) try {
  const Options options(argc, argv);
  tutti::Communicator comm = tutti::init(options.init);
  const int root = 0;

  // Only the root knows the number of strips until the broadcast has ended.
  std::array<std::int64_t, 1> strips{comm.rank() == root ? 1'000'000 : 0};
  comm.broadcast(strips, root).wait();

  // Rank r takes the strips r, r + size, r + 2 * size, ...
  const double width = 1.0 / static_cast<double>(strips[0]);
  std::array<double, 1> area{0.0};
  for (std::int64_t i = comm.rank(); i < strips[0]; i += comm.size()) {
    const double x = (static_cast<double>(i) + 0.5) * width;
    area[0] += width * 4 / (1 + x * x);
  }

  // The root gets one number from each rank, in rank order. The other ranks need no output buffer.
  std::vector<double> parts(comm.rank() == root ? comm.size() : 0);
  comm.gather(area, parts, root).wait();
  std::array<double, 1> pi{0.0};
  for (std::size_t r = 0; r < parts.size(); ++r) {
    print("rank ", r, " computed ", std::setprecision(10), parts[r]);
    pi[0] += parts[r];
  }

  // The root broadcasts pi. Then all_gather gives each rank the values of all ranks.
  comm.broadcast(pi, root).wait();
  std::vector<double> heard(comm.size());
  comm.all_gather(pi, heard).wait();
  for (const double value : heard) {
    if (std::abs(value - 3.14159265358979) > 1e-9) throw std::runtime_error("that is not pi");
  }
  if (comm.rank() == root)
    print("pi is ", std::setprecision(10), pi[0], ", and all ", comm.size(), " ranks know it");
  return 0;
} catch (const std::exception& error) {
  std::cerr << "03_broadcast_gather: " << error.what() << std::endl;
  return 1;
}
