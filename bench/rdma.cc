// This program is one of two ranks, for bench/rdma.sh. It measures what `ib_send_lat` and `ib_write_bw` of
// perftest measure: half the time of a round trip with 8 bytes, and the bandwidth of messages of 4 MiB in one
// direction. The large messages lie in registered memory. Rank 0 prints:
//   tutti LATENCY BANDWIDTH
// LATENCY is the median, in microseconds. BANDWIDTH is the mean, in MiB per second.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <vector>

#include <tutti/tutti.h>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t mebibyte = 1 << 20;
constexpr std::size_t large = 4 * mebibyte;
// At most this many large messages are under way at a time.
constexpr std::size_t depth = 4;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Returns half the time of a round trip, in microseconds. It is the median of `trips` round trips.
double latency(tutti::Communicator& ranks, int trips) {
  std::array<std::byte, 8> message{};
  std::vector<double> times;
  for (int i = 0; i < trips; ++i) {
    const auto begin = Clock::now();
    if (ranks.rank() == 0) ranks.send({message.data(), message.size(), tutti::DataType::uint8}, 1).wait();
    ranks.recv({message.data(), message.size(), tutti::DataType::uint8}, 1 - ranks.rank()).wait();
    if (ranks.rank() == 1) ranks.send({message.data(), message.size(), tutti::DataType::uint8}, 0).wait();
    times.push_back(seconds_since(begin) * 1e6 / 2);
  }
  std::ranges::nth_element(times, times.begin() + trips / 2);
  return times[static_cast<std::size_t>(trips / 2)];
}

// Sends large messages from rank 0 to rank 1. Returns the bandwidth in MiB per second.
double bandwidth(tutti::Communicator& ranks, std::vector<std::byte>& memory, int messages) {
  std::deque<tutti::Work> works;
  ranks.barrier().wait();
  const auto begin = Clock::now();
  for (int i = 0; i < messages; ++i) {
    std::byte* const at = memory.data() + static_cast<std::size_t>(i) % depth * large;
    if (works.size() == depth) {
      works.front().wait();
      works.pop_front();
    }
    works.push_back(ranks.rank() == 0 ? ranks.send({at, large, tutti::DataType::uint8}, 1)
                                      : ranks.recv({at, large, tutti::DataType::uint8}, 0));
  }
  for (tutti::Work& work : works) work.wait();
  ranks.barrier().wait();
  return messages * static_cast<double>(large / mebibyte) / seconds_since(begin);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int trips = argc > 1 ? std::atoi(argv[1]) : 2000;
    const int messages = argc > 2 ? std::atoi(argv[2]) : 200;
    tutti::Communicator ranks = tutti::init();
    std::vector<std::byte> memory(depth * large, std::byte{1});
    const tutti::Registration registered = ranks.register_memory(memory);
    latency(ranks, trips / 10 + 1);  // warms up
    const double trip = latency(ranks, trips);
    bandwidth(ranks, memory, messages / 10 + 1);
    const double speed = bandwidth(ranks, memory, messages);
    if (ranks.rank() == 0) std::printf("tutti %.2f %.2f\n", trip, speed);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rdma: %s\n", error.what());
    return 1;
  }
}
