// This is a program for the ranks of a test with several hosts. It checks six collectives, first with
// the algorithms that tutti chooses, and then with those made for several hosts: `leaders`, and for
// all_reduce also `two_level`. Then it prints how many bytes an all_reduce sends through this host's network
// card with `two_level` and with `ring`.
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <tutti/tutti.h>

namespace {

using tutti::CallOptions;
using tutti::Communicator;
using tutti::ReduceOp;

// Returns the bytes sent through eth0 so far.
std::uint64_t sent_bytes() {
  std::ifstream table("/proc/self/net/dev");
  for (std::string line; std::getline(table, line);) {
    const std::size_t name = line.find("eth0:");
    if (name == line.npos) continue;
    std::array<unsigned long long, 9> columns{};
    std::size_t at = name + 5;
    for (unsigned long long& column : columns) {
      std::size_t used = 0;
      column = std::stoull(line.substr(at), &used);
      at += used;
    }
    return columns[8];
  }
  return 0;
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("wrong result: " + what);
}

// Checks collectives with integers, since integers give the same result for every order of the
// operands.
void check(Communicator& comm, std::size_t n, const std::string& algorithm) {
  const CallOptions leaders{.algorithm = algorithm.empty() ? "" : "leaders"};
  const CallOptions chosen{.algorithm = algorithm};
  const auto p = static_cast<std::size_t>(comm.size());
  const auto rank = static_cast<std::size_t>(comm.rank());
  const auto value = [](std::size_t r, std::size_t i) {
    return static_cast<std::int64_t>(r * 1000 + i % 977);
  };
  const auto total = [&](std::size_t i) {
    std::int64_t sum = 0;
    for (std::size_t r = 0; r < p; ++r) sum += value(r, i);
    return sum;
  };
  std::vector<std::int64_t> mine(n * p), out(n * p);
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = value(rank, i);

  out = mine;
  comm.all_reduce(out, ReduceOp::sum, chosen).wait();
  for (std::size_t i = 0; i < out.size(); ++i) expect(out[i] == total(i), "all_reduce");
  const int root = comm.size() - 1;
  comm.reduce(mine, out, ReduceOp::sum, root, leaders).wait();
  for (std::size_t i = 0; comm.rank() == root && i < out.size(); ++i) expect(out[i] == total(i), "reduce");
  out = mine;
  comm.broadcast(out, root, leaders).wait();
  for (std::size_t i = 0; i < out.size(); ++i) expect(out[i] == value(p - 1, i), "broadcast");
  comm.all_gather(std::vector<std::int64_t>(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(n)), out,
                  leaders)
      .wait();
  for (std::size_t i = 0; i < out.size(); ++i) expect(out[i] == value(i / n, i % n), "all_gather");
  std::vector<std::int64_t> block(n);
  comm.reduce_scatter(mine, block, ReduceOp::sum, leaders).wait();
  for (std::size_t i = 0; i < n; ++i) expect(block[i] == total(rank * n + i), "reduce_scatter");
  comm.barrier(leaders).wait();
}

// Returns how many bytes this host sends for one all_reduce of `bytes` bytes.
std::uint64_t all_reduce_traffic(Communicator& comm, std::size_t bytes, const std::string& algorithm) {
  constexpr int repetitions = 8;
  std::vector<float> data(bytes / sizeof(float), 1.0f);
  comm.all_reduce(data, ReduceOp::max, {.algorithm = algorithm}).wait();  // opens the connections
  comm.barrier().wait();
  const std::uint64_t before = sent_bytes();
  for (int i = 0; i < repetitions; ++i) {
    comm.all_reduce(data, ReduceOp::max, {.algorithm = algorithm}).wait();
  }
  comm.barrier().wait();
  return (sent_bytes() - before) / repetitions;
}

}  // namespace

int main() try {
  Communicator comm = tutti::init();
  for (const std::size_t n : {1u, 100u, 30'000u}) {
    for (const std::string algorithm : {"", "two_level", "leaders"}) check(comm, n, algorithm);
  }
  constexpr std::size_t bytes = 4 << 20;
  const auto two_level = all_reduce_traffic(comm, bytes, "two_level");
  const auto ring = all_reduce_traffic(comm, bytes, "ring");
  std::printf("of %zu bytes: two_level %llu ring %llu\n", bytes, static_cast<unsigned long long>(two_level),
              static_cast<unsigned long long>(ring));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
