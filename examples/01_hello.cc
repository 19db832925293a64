// Each rank prints a line. Then every rank contributes a 1 to a sum. The sum is right only if all ranks have
// met.
//
//   tutti run -n 4 -- 01_hello
//
// or by hand, in two terminals:
//   01_hello --init-method tcp://127.0.0.1:29500 --world-size 2 --rank 0
//   01_hello --init-method tcp://127.0.0.1:29500 --world-size 2 --rank 1
#include <array>
#include <exception>
#include <iostream>

#include "common/options.h"
#include "common/print.h"

int main(int argc, char** argv) try {
  const Options options(argc, argv);

  // `init` blocks until all ranks have arrived. Every process then has a rank from 0 to size - 1.
  tutti::Communicator comm = tutti::init(options.init);
  print("Hello from ", comm.describe(comm.rank()), ", one of ", comm.size());

  // No rank continues before all ranks have reached this point.
  comm.barrier().wait();

  // Each rank contributes a 1. Afterwards each rank holds the sum.
  std::array<int, 1> ones{1};
  comm.all_reduce(ones, tutti::ReduceOp::sum).wait();

  if (ones[0] != comm.size()) throw std::runtime_error("the sum is " + std::to_string(ones[0]));
  if (comm.rank() == 0) print("All ", comm.size(), " ranks met: together they counted to ", ones[0]);
  return 0;
} catch (const std::exception& error) {  // tutti::Error is derived from it
  std::cerr << "01_hello: " << error.what() << std::endl;
  return 1;
}
