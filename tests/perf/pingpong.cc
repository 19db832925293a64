// Round trips between two processes on loopback: a message of ours through Mesh, Driver and the tcp transport
// against the same bytes through bare blocking sockets, in alternating rounds of one run.
//
//   perf_pingpong [bytes] [rounds] [round trips per round] [spin in microseconds] [socket buffer]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tutti/tests/perf/endpoint.h>
#include <tutti/transport/tcp/factory.h>

namespace {

using namespace tutti;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::size_t bytes = 8;
  int rounds = 15;
  int trips = 2000;
  int spin_us = 50;
  int socket_buffer = 0;
};

void exactly(bool writing, int descriptor, void* memory, std::size_t bytes) {
  auto* at = static_cast<char*>(memory);
  while (bytes > 0) {
    const ssize_t done = writing ? write(descriptor, at, bytes) : read(descriptor, at, bytes);
    if (done <= 0) std::abort();
    at += done;
    bytes -= static_cast<std::size_t>(done);
  }
}

// One end of a bare connection; the pair of descriptors is made before the fork.
class Bare {
 public:
  Bare(int descriptor, bool first, const Settings& settings)
      : descriptor_(descriptor), first_(first), settings_(settings), memory_(settings.bytes) {}
  void trip() {
    if (first_) exactly(true, descriptor_, memory_.data(), memory_.size());
    exactly(false, descriptor_, memory_.data(), memory_.size());
    if (!first_) exactly(true, descriptor_, memory_.data(), memory_.size());
  }

 private:
  int descriptor_;
  bool first_;
  Settings settings_;
  std::vector<std::byte> memory_;
};

template <class Way>
double microseconds(Way& way, int trips) {
  const auto start = Clock::now();
  for (int i = 0; i < trips; ++i) way.trip();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / trips;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::pair<int, int> connected_pair() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  if (bind(listener, reinterpret_cast<sockaddr*>(&at), length) != 0 || ::listen(listener, 1) != 0)
    std::abort();
  getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(client, reinterpret_cast<sockaddr*>(&at), length) != 0) std::abort();
  const int server = accept(listener, nullptr, nullptr);
  close(listener);
  const int one = 1;
  for (const int end : {client, server}) setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return {client, server};
}

// The transport is made after the fork; addresses go through the bare connection.
std::vector<PeerInfo> introduce(int rank, int bare, const Transport& transport) {
  std::vector<PeerInfo> peers(2);
  char mine[128] = {}, theirs[128] = {};
  std::snprintf(mine, sizeof mine, "%s", transport.address().c_str());
  exactly(true, bare, mine, sizeof mine);
  exactly(false, bare, theirs, sizeof theirs);
  for (int i = 0; i < 2; ++i) {
    peers[static_cast<std::size_t>(i)].rank = i;
    peers[static_cast<std::size_t>(i)].addresses["tcp"] = i == rank ? mine : theirs;
  }
  return peers;
}

void run(int rank, int descriptor, const Settings& settings) {
  tcp::Options options;
  options.socket_buffer = settings.socket_buffer;
  auto transport = tcp::create(options).take();
  auto peers = introduce(rank, descriptor, *transport);
  perf::Endpoint ours({.rank = rank,
                       .peers = std::move(peers),
                       .transport = std::move(transport),
                       .bytes = settings.bytes,
                       .spin = std::chrono::microseconds(settings.spin_us)});
  Bare bare(descriptor, rank == 0, settings);
  microseconds(ours, settings.trips / 10 + 1);
  microseconds(bare, settings.trips / 10 + 1);
  std::vector<double> ours_us, bare_us, ratios;
  for (int i = 0; i < settings.rounds; ++i) {
    bare_us.push_back(microseconds(bare, settings.trips));
    ours_us.push_back(microseconds(ours, settings.trips));
    ratios.push_back(ours_us.back() / bare_us.back());
  }
  if (rank != 0) return;
  std::printf(
      "%zu bytes: tutti %.2f us, bare socket %.2f us per round trip, ratio %.2f (medians of %d rounds)\n",
      settings.bytes, median(ours_us), median(bare_us), median(ratios), settings.rounds);
  std::printf("one way: tutti %.2f GB/s, bare socket %.2f GB/s\n",
              2e-3 * static_cast<double>(settings.bytes) / median(ours_us),
              2e-3 * static_cast<double>(settings.bytes) / median(bare_us));
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (argc > 1) settings.bytes = std::strtoul(argv[1], nullptr, 0);
  if (argc > 2) settings.rounds = std::atoi(argv[2]);
  if (argc > 3) settings.trips = std::atoi(argv[3]);
  if (argc > 4) settings.spin_us = std::atoi(argv[4]);
  if (argc > 5) settings.socket_buffer = std::atoi(argv[5]);
  const auto [first, second] = connected_pair();
  const pid_t child = fork();
  if (child == 0) {
    close(first);
    run(1, second, settings);
    _exit(0);
  }
  close(second);
  run(0, first, settings);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}
