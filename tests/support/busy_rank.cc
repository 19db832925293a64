// This is a program for the ranks of a test: `busy_rank STOP_FILE [TEXT]`. It finds the other ranks through
// the environment, and prints "ready" after all ranks have computed together. It continues until rank 0 sees
// the file. Then it prints "rounds N", with the number of the last round. With a TEXT, rank 0 also broadcasts
// many copies of the text in each round. If the program fails, it prints the error to stderr and exits with
// status 1.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <tutti/tutti.h>

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: busy_rank STOP_FILE [TEXT]");
  std::fprintf(stderr, "pid %d\n", static_cast<int>(getpid()));
  tutti::Communicator comm = tutti::init();
  constexpr std::size_t most = 300'000;
  std::vector<std::int64_t> data(most);
  std::string text;
  while (argc > 2 && text.size() < most) text += argv[2];
  for (int round = 0;; ++round) {
    std::vector<char> copy(text.size());
    if (comm.rank() == 0) copy.assign(text.begin(), text.end());
    if (!text.empty()) comm.broadcast(std::as_writable_bytes(std::span(copy)), 0).wait();
    if (!std::equal(copy.begin(), copy.end(), text.begin())) throw std::runtime_error("wrong text");
    const std::size_t count = round % 20 == 19 ? most : 100;
    data.assign(count, comm.rank() + round);
    data.front() = comm.rank() == 0 && access(argv[1], F_OK) == 0 ? 1 : 0;
    comm.all_reduce(std::span(data), tutti::ReduceOp::sum).wait();
    if (data.back() != comm.size() * (comm.size() - 1) / 2 + round * comm.size())
      throw std::runtime_error("wrong sum");
    if (round == 20) std::puts("ready");
    std::fflush(stdout);
    if (data.front() != 0) {
      std::printf("rounds %d\n", round);
      return 0;
    }
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
