// Ranks run this program in tests of launchers: `pmi_rank MEETINGS [interrupted]`. The ranks meet MEETINGS
// times, and add up their rank numbers each time. Then all ranks but rank 0 leave at once. Rank 0 stays for
// two more seconds. It prints "sum SUM of SIZE" for each meeting, and "stayed" before it leaves. With
// `interrupted`, a rank that waits for the others acts as if its user had pressed Ctrl-C.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include <tutti/tutti.h>

int main(int count, char** arguments) {
  const int meetings = count > 1 ? std::stoi(arguments[1]) : 1;
  tutti::InitOptions options;
  if (count > 2) options.interrupted = [] { return true; };
  bool first = false;
  try {
    for (int i = 0; i < meetings; ++i) {
      tutti::Communicator comm = tutti::init(options);
      std::int32_t sum = comm.rank();
      comm.all_reduce(std::span(&sum, 1), tutti::ReduceOp::sum).wait();
      first = comm.rank() == 0;
      if (first) std::printf("sum %d of %d\n", sum, comm.size());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  if (first) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    std::printf("stayed\n");
  }
  return 0;
}
