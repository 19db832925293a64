// Measures an MPI library as one of the peers. This file is compiled once for each installed MPI library,
// whose mpirun starts the program.
#include <mpi.h>

#include "bench/peers/harness.h"

namespace tutti::perf {
namespace {

class MpiPeer final : public Peer {
 public:
  MpiPeer() {
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { MPI_Barrier(world_); }
  void largest(std::span<double> values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX, world_);
  }

  std::function<void()> prepare(Collective collective, float* in, float* out, std::size_t count) override {
    const int n = static_cast<int>(count);
    const MPI_Comm w = world_;
    const MPI_Datatype f = MPI_FLOAT;
    switch (collective) {
      case Collective::barrier:
        return [=] { MPI_Barrier(w); };
      case Collective::broadcast:
        return [=] { MPI_Bcast(out, n, f, root, w); };
      case Collective::reduce:
        return [=] { MPI_Reduce(in, out, n, f, MPI_SUM, root, w); };
      case Collective::all_reduce:
        return [=] { MPI_Allreduce(in, out, n, f, MPI_SUM, w); };
      case Collective::all_gather:
        return [=] { MPI_Allgather(in, n, f, out, n, f, w); };
      case Collective::reduce_scatter:
        return [=] { MPI_Reduce_scatter_block(in, out, n, f, MPI_SUM, w); };
      case Collective::all_to_all:
        return [=] { MPI_Alltoall(in, n, f, out, n, f, w); };
      case Collective::gather:
        return [=] { MPI_Gather(in, n, f, out, n, f, root, w); };
      case Collective::scatter:
        return [=] { MPI_Scatter(in, n, f, out, n, f, root, w); };
      case Collective::pingpong:
        return [=, other = 1 - rank_] {
          if (other == 1) MPI_Send(in, n, f, other, 0, w);
          MPI_Recv(out, n, f, other, 0, w, MPI_STATUS_IGNORE);
          if (other == 0) MPI_Send(in, n, f, other, 0, w);
        };
    }
    return {};
  }

 private:
  const MPI_Comm world_ = MPI_COMM_WORLD;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace
}  // namespace tutti::perf

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int status = 0;
  {
    tutti::perf::MpiPeer peer;
    status = tutti::perf::measure_peer(peer, tutti::perf::Arguments(count, words));
  }
  MPI_Finalize();
  return status;
}
