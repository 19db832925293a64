// Measures tutti as one of the peers, with the defaults that users get. `tutti run` starts the ranks.
// bench/peers.py sets no variable except TUTTI_TRANSPORTS and TUTTI_ALGORITHM, each for some of the peers.
#include <cstdio>
#include <stdexcept>

#include <tutti/tutti.h>

#include "bench/peers/harness.h"

namespace tutti::perf {
namespace {

class TuttiPeer final : public Peer {
 public:
  explicit TuttiPeer(bool registered) : registered_(registered) {}
  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  void barrier() override { communicator_.barrier().wait(); }
  void largest(std::span<double> values) override {
    communicator_.all_reduce(Buffer(values), ReduceOp::max).wait();
  }

  std::shared_ptr<float> allocate(std::size_t floats) override {
    if (!registered_) return nullptr;
    auto allocation = std::make_shared<Allocation>(communicator_.allocate(floats * sizeof(float)));
    if (!allocation->registered()) throw std::runtime_error("no transport here registers memory");
    return {allocation, static_cast<float*>(allocation->data())};
  }

  std::function<void()> prepare(Collective collective, float* in, float* out, std::size_t count) override {
    const std::size_t blocks = count * static_cast<std::size_t>(size());
    const std::span from(in, count), from_blocks(in, blocks), to(out, count), to_blocks(out, blocks);
    Communicator& comm = communicator_;
    switch (collective) {
      case Collective::barrier:
        return [&comm] { comm.barrier().wait(); };
      case Collective::broadcast:
        return [&comm, to] { comm.broadcast(to, root).wait(); };
      case Collective::reduce:
        return [&comm, from, to] { comm.reduce(from, to, ReduceOp::sum, root).wait(); };
      case Collective::all_reduce:
        return [&comm, from, to] { comm.all_reduce(from, to, ReduceOp::sum).wait(); };
      case Collective::all_gather:
        return [&comm, from, to_blocks] { comm.all_gather(from, to_blocks).wait(); };
      case Collective::reduce_scatter:
        return [&comm, from_blocks, to] { comm.reduce_scatter(from_blocks, to, ReduceOp::sum).wait(); };
      case Collective::all_to_all:
        return [&comm, from_blocks, to_blocks] { comm.all_to_all(from_blocks, to_blocks).wait(); };
      case Collective::gather:
        return [&comm, from, to_blocks] { comm.gather(from, to_blocks, root).wait(); };
      case Collective::scatter:
        return [&comm, from_blocks, to] { comm.scatter(from_blocks, to, root).wait(); };
      case Collective::pingpong:
        return [&comm, from, to] {
          const int other = 1 - comm.rank();
          if (comm.rank() == 0) comm.send(from, other).wait();
          comm.recv(to, other, 0).wait();
          if (comm.rank() == 1) comm.send(from, other).wait();
        };
    }
    return {};
  }

 private:
  Communicator communicator_ = init();
  const bool registered_;
};

}  // namespace
}  // namespace tutti::perf

int main(int count, char** words) {
  try {
    const tutti::perf::Arguments arguments(count, words);
    tutti::perf::TuttiPeer peer(arguments.number("registered", 0) != 0);
    return tutti::perf::measure_peer(peer, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "perf_tutti: %s\n", error.what());
    return 1;
  }
}
