// Shows all_reduce. Each rank contributes a list of numbers, and all lists have the same length.
// All ranks get the same list back. Its first number is the sum (or maximum, average, ...) of the
// first numbers of all ranks, and so on.
//
//   tutti run -n 4 -- 02_all_reduce
#include <algorithm>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/print.h"

namespace {

template <class T>
std::string list(const std::vector<T>& values) {
  std::ostringstream text;
  for (const T& value : values) text << (text.tellp() > 0 ? ", " : "[") << value;
  return text.str() + "]";
}

// Prints a result on rank 0. Throws on any rank if the result is not the expected one.
template <class T>
void check(const tutti::Communicator& comm, const std::string& what, const std::vector<T>& result,
           const std::vector<T>& expected) {
  if (comm.rank() == 0) print(what, ": ", list(result));
  if (result != expected) throw std::runtime_error(what + ": " + list(result) + ", not " + list(expected));
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options(argc, argv);
  tutti::Communicator comm = tutti::init(options.init);
  const float rank = static_cast<float>(comm.rank());
  const float size = static_cast<float>(comm.size());

  // In place: the result replaces the input.
  std::vector<float> values{1, rank, 10 * rank};
  print("rank ", comm.rank(), " brings ", list(values));
  comm.all_reduce(values, tutti::ReduceOp::sum).wait();
  const float ranks_sum = size * (size - 1) / 2;  // 0 + 1 + ... + (size - 1)
  check(comm, "sum, in place", values, {size, ranks_sum, 10 * ranks_sum});

  // Out of place: the input stays as it was.
  const std::vector<float> mine{rank, 0 - rank};
  std::vector<float> all(2);
  comm.all_reduce(mine, all, tutti::ReduceOp::max).wait();
  check(comm, "max", all, {size - 1, 0});
  comm.all_reduce(mine, all, tutti::ReduceOp::min).wait();
  check(comm, "min", all, {0, 1 - size});
  comm.all_reduce(mine, all, tutti::ReduceOp::avg).wait();
  check(comm, "average", all, {ranks_sum / size, -ranks_sum / size});

  // Each input is multiplied by a factor, and the products are added up.
  comm.all_reduce(mine, all, tutti::ReduceOp::premultiplied_sum(0.5)).wait();
  check(comm, "sum of halves", all, {ranks_sum / 2, -ranks_sum / 2});

  // The container determines the element type. Here it is a 64-bit integer, in which each rank sets one bit.
  std::vector<std::uint64_t> bits{std::uint64_t{1} << (comm.rank() % 64)};
  comm.all_reduce(bits, tutti::ReduceOp::bit_or).wait();
  const std::uint64_t all_bits = ~std::uint64_t{0} >> (64 - std::min(comm.size(), 64));
  check(comm, "bits of all ranks", bits, {all_bits});
  return 0;
} catch (const std::exception& error) {
  std::cerr << "02_all_reduce: " << error.what() << std::endl;
  return 1;
}
