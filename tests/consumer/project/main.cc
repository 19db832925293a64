// Runs an all_reduce in a world of one rank, which needs no launcher.
#include <array>
#include <cstdio>
#include <string>

#include <tutti/tutti.h>

int main() {
  try {
    tutti::Communicator comm = tutti::init();
    std::array<float, 3> values = {1, 2, 3};
    comm.all_reduce(values, tutti::ReduceOp::sum).wait();
    std::printf("tutti %s: rank %d of %d, %g\n", std::string(tutti::version()).c_str(), comm.rank(),
                comm.size(), values[2]);
    return comm.size() == 1 && values[2] == 3 ? 0 : 1;
  } catch (const tutti::Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
