// Runs a given number of all_reduces of 8 bytes and nothing else. instructions.py counts their instructions.
//   instructions [OPERATIONS]   (1 by default)
#include <array>
#include <cstdlib>

#include <tutti/tutti.h>

int main(int count, char** words) {
  const long operations = count > 1 ? std::atol(words[1]) : 1;
  tutti::Communicator communicator = tutti::init();
  std::array<float, 2> in{1, 2};
  std::array<float, 2> out{};
  for (long i = 0; i < operations; ++i)
    communicator.all_reduce(std::span<const float>(in), std::span(out), tutti::ReduceOp::sum).wait();
}
