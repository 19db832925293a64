#include "bench/peers/harness.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

namespace tutti::perf {
namespace {

constexpr double batch_us = 2000;
constexpr long most_operations = 1000;
constexpr int most_estimates = 8;
constexpr long most_batches = 1000;
constexpr std::size_t alignment = 4096;
constexpr std::string_view default_sizes = "4,8,64,1K,8K,64K,1M,8M,64M";

struct Budget {
  double warmup_us;
  double measure_us;
  long fewest_batches;
};

using Memory = std::shared_ptr<float>;

Memory allocate(Peer& peer, std::size_t floats) {
  const std::size_t bytes = (floats * sizeof(float) + alignment - 1) / alignment * alignment;
  Memory memory = peer.allocate(floats);
  if (memory == nullptr) memory.reset(static_cast<float*>(std::aligned_alloc(alignment, bytes)), std::free);
  if (memory == nullptr) throw std::bad_alloc();
  std::fill_n(memory.get(), floats, 0.0f);  // touches the pages, so that no measurement includes page faults
  return memory;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    words.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::size_t bytes_of(const std::string& size) {
  const std::size_t unit = size.back() == 'K' ? 1 << 10 : size.back() == 'M' ? 1 << 20 : 1;
  return std::stoul(size) * unit;
}

// A `Cell` is one collective at one size.
struct Cell {
  Cell(Collective what, std::size_t asked, int ranks) : collective(what), bytes(asked) {
    const std::size_t whole = std::max<std::size_t>(1, asked / sizeof(float));
    const auto blocks = static_cast<std::size_t>(has_blocks(what) ? ranks : 1);
    count = std::max<std::size_t>(1, whole / blocks);
    elements = count * blocks;
  }
  Collective collective;
  std::size_t bytes;     // the size that the arguments asked for
  std::size_t count;     // the number of elements of the vector, or of one block
  std::size_t elements;  // the number of elements of the vector
};

class Measuring {
 public:
  Measuring(Peer& peer, const Cell& cell, float* in, float* out)
      : peer_(peer),
        cell_(cell),
        in_(in),
        out_(out),
        run_(peer.prepare(cell.collective, in, out, cell.count)) {}

  bool supported() const { return run_ != nullptr; }

  // Runs the operation once on fresh data. Returns whether the result is right on all ranks.
  bool verify() {
    fill_input({in_, cell_.elements}, peer_.rank());
    fill_input({out_, cell_.elements}, peer_.rank());
    peer_.barrier();
    run_();
    double wrong[] = {
        static_cast<double>(count_wrong(cell_.collective, out_, cell_.count, peer_.rank(), peer_.size()))};
    peer_.largest(wrong);
    return wrong[0] == 0;
  }

  // Returns the sorted times of the batches. The time of a batch is the microseconds per operation
  // on the slowest rank. Sets `operations` to the number of operations in a batch.
  std::vector<double> times(const Budget& budget, long& operations) {
    double estimate = agreed_batch(1);
    estimate = agreed_batch(clamped(budget.warmup_us / estimate, 1, most_operations));
    operations = clamped(batch_us / estimate, 1, most_operations);
    // A short batch mostly waits for the slowest rank. Operations then look slower than they are,
    // and the next batch would be too short. So the time is estimated again until a batch is long
    // enough.
    for (int again = 0; again < most_estimates && operations < most_operations; ++again) {
      estimate = agreed_batch(operations);
      if (estimate * static_cast<double>(operations) > batch_us / 2) break;
      operations = clamped(batch_us / estimate, 1, most_operations);
    }
    const double one_batch = estimate * static_cast<double>(operations);
    const long batches = clamped(budget.measure_us / one_batch, budget.fewest_batches, most_batches);
    std::vector<double> found(static_cast<std::size_t>(batches));
    for (double& time : found) time = batch(operations);
    peer_.largest(found);
    std::ranges::sort(found);
    return found;
  }

 private:
  static long clamped(double value, long least, long most) {
    return std::clamp(std::lround(std::min(value, 1e9)), least, most);
  }
  double batch(long operations) {
    peer_.barrier();
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < operations; ++i) run_();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    return time.count() / static_cast<double>(operations);
  }
  double agreed_batch(long operations) {
    double time[] = {batch(operations)};
    peer_.largest(time);
    return std::max(time[0], 1e-3);
  }

  Peer& peer_;
  const Cell& cell_;
  float* in_;
  float* out_;
  std::function<void()> run_;
};

void print(const std::string& peer, const Cell& cell, int ranks, std::vector<double> times, long operations) {
  if (cell.collective == Collective::pingpong) {
    for (double& time : times) time /= 2;
  }
  const double median = times[times.size() / 2];
  const auto last = std::lround(std::ceil(0.99 * static_cast<double>(times.size()))) - 1;
  const double bytes =
      cell.collective == Collective::barrier ? 0 : static_cast<double>(cell.elements * sizeof(float));
  const double bandwidth = bytes / median / 1e3;
  std::printf("%s,%s,%zu,%d,%.3f,%.3f,%.4f,%.4f,%.3f,%zu,%ld\n", peer.c_str(),
              name_of(cell.collective).data(), cell.bytes, ranks, median,
              times[static_cast<std::size_t>(last)], bandwidth,
              bandwidth * bus_factor(cell.collective, ranks), times.front(), times.size(), operations);
  std::fflush(stdout);
}

// Runs barriers for a while. Ranks that have just started often share a processor. The kernel
// separates them after some tens of milliseconds. Without these barriers, the first result would
// include that time.
void settle(Peer& peer, double time_us) {
  constexpr int barriers = 10;
  const auto begin = std::chrono::steady_clock::now();
  for (double longest[] = {0}; longest[0] < time_us;) {
    for (int i = 0; i < barriers; ++i) peer.barrier();
    longest[0] = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    peer.largest(longest);
  }
}

std::vector<Cell> cells_of(const Arguments& arguments, int ranks) {
  const std::vector<std::string> wanted = split(arguments.text("collectives", ""));
  const std::vector<std::string> sizes = split(arguments.text("sizes", default_sizes));
  std::vector<Cell> cells;
  for (const Collective collective : all_collectives()) {
    if (!wanted.empty() && std::ranges::find(wanted, name_of(collective)) == wanted.end()) continue;
    if (collective == Collective::pingpong && ranks != 2) continue;
    if (collective == Collective::barrier) {
      cells.emplace_back(collective, 0, ranks);
      continue;
    }
    for (const std::string& size : sizes) cells.emplace_back(collective, bytes_of(size), ranks);
  }
  return cells;
}

}  // namespace

std::string Arguments::text(std::string_view key, std::string_view otherwise) const {
  const std::string begin = "--" + std::string(key) + "=";
  for (const std::string& word : words_) {
    if (word.starts_with(begin)) return word.substr(begin.size());
  }
  return std::string(otherwise);
}

long Arguments::number(std::string_view key, long otherwise) const {
  return std::stol(text(key, std::to_string(otherwise)));
}

int measure_peer(Peer& peer, const Arguments& arguments) {
  const std::string name = arguments.text("peer", "peer");
  const Budget budget{1e3 * static_cast<double>(arguments.number("warmup-ms", 5)),
                      1e3 * static_cast<double>(arguments.number("budget-ms", 25)),
                      arguments.number("batches", 3)};
  const std::vector<Cell> cells = cells_of(arguments, peer.size());
  std::size_t most = 1;
  for (const Cell& cell : cells) most = std::max(most, cell.elements);
  const Memory in = allocate(peer, most);
  const Memory out = allocate(peer, most);
  settle(peer, 1e3 * static_cast<double>(arguments.number("settle-ms", 100)));
  int status = 0;
  for (const Cell& cell : cells) {
    Measuring measuring(peer, cell, in.get(), out.get());
    if (!measuring.supported()) continue;
    long operations = 0;
    bool right = measuring.verify();
    const std::vector<double> times = measuring.times(budget, operations);
    right = measuring.verify() && right;
    if (!right) status = 1;
    if (peer.rank() == root) {
      if (right) {
        print(name, cell, peer.size(), times, operations);
      } else {
        std::fprintf(stderr, "%s: wrong result of %s, %zu bytes\n", name.c_str(),
                     name_of(cell.collective).data(), cell.bytes);
      }
    }
  }
  peer.barrier();  // after this, no rank uses the buffers
  return status;
}

}  // namespace tutti::perf
