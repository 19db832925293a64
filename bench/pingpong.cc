// Measures round trips between two processes of one host. One run alternates between four methods.
// Two of them send messages through Mesh, Driver and a transport (tcp and shm). The other two use
// only the basis of these transports: a plain blocking socket, and cache lines that the processes
// write in turn.
//
//   perf_pingpong [bytes] [rounds] [round trips per round] [spin in microseconds] [socket buffer] [ring]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/endpoint.h"
#include "transport/shm/factory.h"
#include "transport/tcp/factory.h"

namespace {

using namespace tutti;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::size_t bytes = 8;
  int rounds = 15;
  int trips = 2000;
  int spin_us = 50;
  int socket_buffer = 0;
  std::size_t ring = 128 * 1024;
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

// `Bare` is one end of a connection without tutti. The connection is made before the fork.
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

// `Line` has two cache lines. The processes take turns, and each writes its own line. This is the
// fastest possible round trip through shared memory.
class Line {
 public:
  Line(std::atomic<std::uint64_t>* words, bool first) : words_(words), first_(first) {}
  void trip() {
    ++turn_;
    if (first_) words_[0].store(turn_, std::memory_order_release);
    while (words_[first_ ? line : 0].load(std::memory_order_acquire) != turn_) {
    }
    if (!first_) words_[line].store(turn_, std::memory_order_release);
  }
  static std::atomic<std::uint64_t>* map() {
    void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    return static_cast<std::atomic<std::uint64_t>*>(memory);
  }

 private:
  static constexpr std::size_t line = 128 / sizeof(std::uint64_t);
  std::atomic<std::uint64_t>* words_;
  bool first_;
  std::uint64_t turn_ = 0;
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

// Exchanges the addresses of both processes' transports over the bare connection. Each process makes its
// transport after the fork, so the other process does not know the address.
std::vector<PeerInfo> introduce(int rank, int bare, const Transport& transport) {
  std::vector<PeerInfo> peers(2);
  char mine[128] = {}, theirs[128] = {};
  std::snprintf(mine, sizeof mine, "%s", transport.address().c_str());
  exactly(true, bare, mine, sizeof mine);
  exactly(false, bare, theirs, sizeof theirs);
  for (int i = 0; i < 2; ++i) {
    PeerInfo& peer = peers[static_cast<std::size_t>(i)];
    peer.rank = i;
    peer.boot_id = "this host";
    peer.addresses[std::string(transport.name())] = i == rank ? mine : theirs;
  }
  return peers;
}

std::unique_ptr<perf::Endpoint> make_ours(int rank, int descriptor, std::unique_ptr<Transport> transport,
                                          const Settings& settings) {
  auto peers = introduce(rank, descriptor, *transport);
  return std::make_unique<perf::Endpoint>(
      perf::EndpointOptions{.rank = rank,
                            .peers = std::move(peers),
                            .transport = std::move(transport),
                            .bytes = settings.bytes,
                            .spin = std::chrono::microseconds(settings.spin_us)});
}

void print(const char* what, const std::vector<double>& us, const std::vector<double>& bound_us,
           const Settings& settings) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < us.size(); ++i) ratios.push_back(us[i] / bound_us[i]);
  std::printf("%-12s %9.3f us per round trip, %6.2f times the bound, one way %6.2f GB/s\n", what, median(us),
              median(ratios), 2e-3 * static_cast<double>(settings.bytes) / median(us));
}

void run(int rank, int descriptor, std::atomic<std::uint64_t>* words, const Settings& settings) {
  tcp::Options options;
  options.socket_buffer = settings.socket_buffer;
  const auto tcp = make_ours(rank, descriptor, tcp::create(options).take(), settings);
  const auto shm = make_ours(rank, descriptor, shm::create({.ring = settings.ring}).take(), settings);
  Bare bare(descriptor, rank == 0, settings);
  Line line(words, rank == 0);
  std::vector<double> tcp_us, shm_us, bare_us, line_us;
  for (int i = -1; i < settings.rounds; ++i) {
    const double line_now = microseconds(line, settings.trips), shm_now = microseconds(*shm, settings.trips);
    const double bare_now = microseconds(bare, settings.trips), tcp_now = microseconds(*tcp, settings.trips);
    if (i < 0) continue;  // warming up
    line_us.push_back(line_now);
    shm_us.push_back(shm_now);
    bare_us.push_back(bare_now);
    tcp_us.push_back(tcp_now);
  }
  if (rank != 0) return;
  std::printf("%zu bytes, medians of %d rounds\n", settings.bytes, settings.rounds);
  print("cache line", line_us, line_us, settings);
  print("shm", shm_us, line_us, settings);
  print("bare socket", bare_us, bare_us, settings);
  print("tcp", tcp_us, bare_us, settings);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (argc > 1) settings.bytes = std::strtoul(argv[1], nullptr, 0);
  if (argc > 2) settings.rounds = std::atoi(argv[2]);
  if (argc > 3) settings.trips = std::atoi(argv[3]);
  if (argc > 4) settings.spin_us = std::atoi(argv[4]);
  if (argc > 5) settings.socket_buffer = std::atoi(argv[5]);
  if (argc > 6) settings.ring = std::strtoul(argv[6], nullptr, 0);
  std::atomic<std::uint64_t>* const words = Line::map();
  const auto [first, second] = connected_pair();
  const pid_t child = fork();
  if (child == 0) {
    close(first);
    run(1, second, words, settings);
    _exit(0);
  }
  close(second);
  run(0, first, words, settings);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}
