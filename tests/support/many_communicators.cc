// This is a program for the ranks of a test: `many_communicators COUNT`. It makes COUNT communicators, half
// of them by `split` and half by `group`. It keeps them all, and runs a collective on each. Then it prints
// how many more threads and descriptors it has than with one communicator. It also prints how many messages
// this rank sends for one more collective on each communicator, and the average time to make a communicator.
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <tutti/tutti.h>

namespace {

int entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<int>(std::distance(begin(all), end(all)));
}

// Makes a communicator of all ranks, or of all but one. The rank that is left out gets a separate
// communicator. A different rank is left out each time. The rank with the most free room provides the shared
// memory of a communicator, so the ranks take turns at providing it.
tutti::Communicator make(tutti::Communicator& comm, int number) {
  const int left_out = number % (comm.size() + 1);  // `comm.size()` means none
  if (number % 2 == 0) {
    auto part = comm.split(comm.rank() == left_out ? 1 : 0);
    return std::move(*part);
  }
  std::vector<int> ranks;
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (rank != left_out) ranks.push_back(rank);
  }
  if (comm.rank() == left_out) ranks = {left_out};
  return comm.group(ranks);
}

void use(tutti::Communicator& part) {
  std::vector<std::int64_t> sum(1000, part.rank() + 1);
  part.all_reduce(sum, tutti::ReduceOp::sum).wait();
  if (sum.back() != part.size() * (part.size() + 1) / 2) throw std::runtime_error("wrong sum");
}

}  // namespace

int main(int argc, char** argv) try {
  using Clock = std::chrono::steady_clock;
  if (argc != 2) throw std::runtime_error("usage: many_communicators COUNT");
  const int count = std::stoi(argv[1]);
  const rlimit few{256, 256};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) throw std::runtime_error("setrlimit");
  tutti::Communicator comm = tutti::init();
  use(comm);
  const int threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");
  std::vector<tutti::Communicator> kept;
  Clock::duration making{};
  for (int i = 0; i < count; ++i) {
    const Clock::time_point begin = Clock::now();
    kept.push_back(make(comm, i));
    making += Clock::now() - begin;
    use(kept.back());
  }
  const std::uint64_t sent = comm.statistics().messages_sent;
  for (tutti::Communicator& each : kept) use(each);
  const auto messages = comm.statistics().messages_sent - sent;
  comm.barrier().wait();
  std::printf(
      "rank %d threads %d descriptors %d messages %d microseconds %d\n", comm.rank(),
      entries("/proc/self/task") - threads, entries("/proc/self/fd") - descriptors,
      static_cast<int>(messages),
      static_cast<int>(std::chrono::duration_cast<std::chrono::microseconds>(making).count() / count));
  comm.barrier().wait();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
