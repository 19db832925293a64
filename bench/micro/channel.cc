// Measures round trips between two threads over inproc, shm and tcp. Each thread has its own driver
// and mesh.
#include <memory>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/endpoint.h"
#include "transport/inproc/factory.h"
#include "transport/shm/factory.h"
#include "transport/tcp/factory.h"

namespace tutti::perf {
namespace {

constexpr std::byte go_on{0};
constexpr std::byte stop{1};

using Transports = std::vector<std::unique_ptr<Transport>>;

Transports two_inproc() {
  const auto hub = inproc::make_hub();
  Transports made;
  for (int rank = 0; rank < 2; ++rank) made.push_back(inproc::create({.hub = hub, .rank = rank}));
  return made;
}

Transports two_tcp() {
  Transports made;
  for (int rank = 0; rank < 2; ++rank) made.push_back(tcp::create({}).take());
  return made;
}

Transports two_shm() {
  Transports made;
  for (int rank = 0; rank < 2; ++rank) made.push_back(shm::create({}).take());
  return made;
}

void round_trip(benchmark::State& state, Transports (*make)()) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Transports transports = make();
  std::vector<PeerInfo> peers(2);
  for (int rank = 0; rank < 2; ++rank) {
    const Transport& transport = *transports[static_cast<std::size_t>(rank)];
    PeerInfo& peer = peers[static_cast<std::size_t>(rank)];
    peer.rank = rank;
    peer.boot_id = "this host";
    peer.addresses[std::string(transport.name())] = transport.address();
  }
  std::thread other([&] {
    Endpoint endpoint({.rank = 1, .peers = peers, .transport = std::move(transports[1]), .bytes = bytes});
    do {
      endpoint.trip();
    } while (endpoint.first_byte() == go_on);
  });
  {
    Endpoint endpoint({.rank = 0, .peers = peers, .transport = std::move(transports[0]), .bytes = bytes});
    endpoint.first_byte() = go_on;
    for (auto iteration : state) endpoint.trip();
    endpoint.first_byte() = stop;
    endpoint.trip();
    other.join();
  }
  state.SetBytesProcessed(2 * state.iterations() * static_cast<std::int64_t>(bytes));
}

void sizes(benchmark::internal::Benchmark* of) {
  of->Arg(8)->Arg(4096)->Arg(65536)->Arg(1 << 20)->UseRealTime();
}

BENCHMARK_CAPTURE(round_trip, inproc, two_inproc)->Name("channel/inproc round trip")->Apply(sizes);
BENCHMARK_CAPTURE(round_trip, shm, two_shm)->Name("channel/shm round trip")->Apply(sizes);
BENCHMARK_CAPTURE(round_trip, tcp, two_tcp)->Name("channel/tcp round trip")->Apply(sizes);

}  // namespace
}  // namespace tutti::perf
