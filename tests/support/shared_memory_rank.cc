// This is a program for the ranks of a test: `shared_memory_rank URL MODE`. It prints "ready" when all ranks
// have met and every pair has exchanged a message. The mode decides what follows:
//   end      leaves
//   free     allocates memory, releases it, and leaves when the memory is no longer mapped
//   recv     waits for a message from the last rank, which makes no calls
//   reduce   takes part in collectives until one fails; the last rank makes no calls
//   all      takes part in collectives until one fails
//   others   rank 0 waits for a message; the other ranks take part in collectives until one fails
//   splits   makes and keeps hundreds of communicators while it cannot open any descriptor
// If the program fails, it prints the error to stderr and exits with status 1.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <tutti/tutti.h>

namespace {

// Sends small and large messages in both directions between all pairs of ranks, and runs a collective on all
// ranks.
void exchange(tutti::Communicator& comm) {
  constexpr std::size_t large = 300'000;
  const int size = comm.size(), rank = comm.rank();
  for (const std::size_t count : {std::size_t{1}, large}) {
    std::vector<std::vector<std::int32_t>> in(static_cast<std::size_t>(size),
                                              std::vector<std::int32_t>(count));
    const std::vector<std::int32_t> out(count, rank);
    std::vector<tutti::Work> works;
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      works.push_back(comm.recv(in[static_cast<std::size_t>(peer)], peer, 5));
      works.push_back(comm.send(out, peer, 5));
    }
    for (tutti::Work& work : works) work.wait();
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank && in[static_cast<std::size_t>(peer)].back() != peer)
        throw std::runtime_error("wrong data");
    }
  }
  std::vector<std::int64_t> sum(large, rank + 1);
  comm.all_reduce(sum, tutti::ReduceOp::sum).wait();
  if (sum.back() != size * (size + 1) / 2) throw std::runtime_error("wrong sum");
}

// Returns how many of tutti's shared memory segments are mapped.
int mapped_segments() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("/memfd:tutti") != line.npos ? 1 : 0;
  return count;
}

// Tests that memory is unmapped even while the rank makes no calls.
void allocate_and_free(tutti::Communicator& comm) {
  const int before = mapped_segments();
  {
    tutti::Allocation memory = comm.allocate(1'000'000);
    if (!memory.registered() || mapped_segments() != before + 1) throw std::runtime_error("not registered");
    comm.all_reduce(memory.as<float>(), tutti::ReduceOp::sum).wait();
    if (comm.rank() == 0) usleep(50'000);  // rank 0 releases its memory last
  }
  for (int i = 0; i < 30'000 && mapped_segments() > before; ++i) usleep(1000);
  if (mapped_segments() > before) throw std::runtime_error("still mapped");
}

void keep_splits(tutti::Communicator& comm) {
  constexpr int splits = 300;
  const rlimit none{3, 3};  // fewer descriptors than are already open
  if (setrlimit(RLIMIT_NOFILE, &none) != 0) throw std::runtime_error("setrlimit");
  const std::uint64_t sent = comm.statistics().messages_sent;
  std::vector<tutti::Communicator> kept;
  for (int i = 0; i < splits; ++i) {
    kept.push_back(*comm.split(i % 3 == 0 ? comm.rank() % 2 : 0));
    std::vector<std::int64_t> sum(i % 2 == 0 ? 3 : 3000, kept.back().rank() + 1);
    const int size = kept.back().size();
    kept.back().all_reduce(sum, tutti::ReduceOp::sum).wait();
    if (sum.back() != size * (size + 1) / 2) throw std::runtime_error("wrong sum");
  }
  for (tutti::Communicator& each : kept) each.barrier().wait();
  if (comm.statistics().messages_sent != sent) throw std::runtime_error("not all communicators share memory");
}

void reduce_among_others(tutti::Communicator& comm) {
  std::optional<tutti::Communicator> others = comm.split(comm.rank() == 0 ? tutti::no_color : 0);
  std::vector<std::int32_t> data(1000);
  if (!others) comm.recv(data, 1, 6).wait();
  for (;;) others->all_reduce(data, tutti::ReduceOp::max).wait();
}

void go_on(tutti::Communicator& comm, const std::string& mode) {
  const int last = comm.size() - 1;
  std::vector<std::int32_t> data(1000);
  if (mode == "end") return;
  if (mode == "splits") return keep_splits(comm);
  if (mode == "others") return reduce_among_others(comm);
  if (mode == "free") {
    allocate_and_free(comm);
    comm.barrier().wait();
    return;
  }
  if (comm.rank() == last && mode != "all") {
    for (;;) pause();
  }
  if (mode == "recv") comm.recv(data, last, 6).wait();
  for (;;) comm.all_reduce(data, tutti::ReduceOp::max).wait();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw std::runtime_error("usage: shared_memory_rank URL MODE");
  tutti::Communicator comm = tutti::init(argv[1]);
  exchange(comm);
  comm.barrier().wait();
  std::puts("ready");
  std::fflush(stdout);
  go_on(comm, argv[2]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
