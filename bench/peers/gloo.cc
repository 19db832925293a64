// Measures Gloo as one of the peers. It uses Gloo's TCP transport, by default on loopback. The ranks meet
// through files in a directory. Each rank is a process:
//   perf_gloo --rank=R --size=N --store=DIRECTORY [--address=A] ...
// Each collective uses Gloo's default function. Gloo has no function for reduce_scatter. Its class
// ReduceScatterHalvingDoubling is used instead, which works in place.
#include <memory>
#include <string>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include "bench/peers/harness.h"

namespace tutti::perf {
namespace {

using ReduceFunction = void (*)(void*, const void*, const void*, std::size_t);
constexpr ReduceFunction sum = &gloo::sum<float>;
constexpr ReduceFunction maximum = &gloo::max<double>;
constexpr std::uint64_t pingpong_slot = 1 << 20;

// Newer versions of Gloo take the store as a shared_ptr, and older ones by reference.
template <class Context, class Store, class Device>
void meet(Context& context, const std::shared_ptr<Store>& store, std::shared_ptr<Device>& device) {
  if constexpr (requires { context.connectFullMesh(store, device); }) {
    context.connectFullMesh(store, device);
  } else {
    context.connectFullMesh(*store, device);
  }
}

class GlooPeer final : public Peer {
 public:
  explicit GlooPeer(const Arguments& arguments) {
    auto store = std::make_shared<gloo::rendezvous::FileStore>(arguments.text("store", "."));
    auto device = gloo::transport::tcp::CreateDevice(arguments.text("address", "127.0.0.1").c_str());
    context_ = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(arguments.number("rank", 0)),
                                                           static_cast<int>(arguments.number("size", 1)));
    meet(*context_, store, device);
  }
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  void largest(std::span<double> values) override {
    gloo::AllreduceOptions options(context_);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(maximum);
    gloo::allreduce(options);
  }

  std::function<void()> prepare(Collective collective, float* in, float* out, std::size_t count) override {
    const std::size_t blocks = count * static_cast<std::size_t>(size());
    switch (collective) {
      case Collective::barrier:
        return made<gloo::BarrierOptions>(gloo::barrier, [](auto&) {});
      case Collective::broadcast:
        return made<gloo::BroadcastOptions>(gloo::broadcast, [&](auto& options) {
          options.setRoot(root);
          options.setOutput(out, count);
        });
      case Collective::reduce:
        return made<gloo::ReduceOptions>(gloo::reduce, [&](auto& options) {
          options.setRoot(root);
          options.setInput(in, count);
          options.setOutput(out, count);
          options.setReduceFunction(sum);
        });
      case Collective::all_reduce:
        return made<gloo::AllreduceOptions>([](gloo::AllreduceOptions& options) { gloo::allreduce(options); },
                                            [&](auto& options) {
                                              options.setInput(in, count);
                                              options.setOutput(out, count);
                                              options.setReduceFunction(sum);
                                            });
      case Collective::all_gather:
        return made<gloo::AllgatherOptions>(gloo::allgather, [&](auto& options) {
          options.setInput(in, count);
          options.setOutput(out, blocks);
        });
      case Collective::reduce_scatter:
        return reduce_scatter(out, count, blocks);
      case Collective::all_to_all:
        return made<gloo::AlltoallOptions>(gloo::alltoall, [&](auto& options) {
          options.setInput(in, blocks);
          options.setOutput(out, blocks);
        });
      case Collective::gather:
        return made<gloo::GatherOptions>(gloo::gather, [&](auto& options) {
          options.setRoot(root);
          options.setInput(in, count);
          if (rank() == root) options.setOutput(out, blocks);
        });
      case Collective::scatter:
        return made<gloo::ScatterOptions>(gloo::scatter,
                                          [&](auto& options) { set_scatter(options, in, out, count); });
      case Collective::pingpong:
        return pingpong(in, out, count);
    }
    return {};
  }

 private:
  // The options are made once and reused, as in Gloo's own benchmark.
  template <class Options, class Run, class Set>
  std::function<void()> made(Run run, const Set& set) {
    auto options = std::make_shared<Options>(context_);
    set(*options);
    return [options, run] { run(*options); };
  }
  void set_scatter(gloo::ScatterOptions& options, float* in, float* out, std::size_t count) const {
    options.setRoot(root);
    options.setOutput(out, count);
    if (rank() != root) return;
    std::vector<float*> inputs;
    for (int r = 0; r < size(); ++r) inputs.push_back(in + count * static_cast<std::size_t>(r));
    options.setInputs(inputs, count);
  }
  std::function<void()> reduce_scatter(float* in_out, std::size_t count, std::size_t blocks) {
    const std::vector<int> counts(static_cast<std::size_t>(size()), static_cast<int>(count));
    auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
        context_, std::vector<float*>{in_out}, static_cast<int>(blocks), counts);
    return [algorithm] { algorithm->run(); };
  }
  std::function<void()> pingpong(float* in, float* out, std::size_t count) {
    std::shared_ptr<gloo::transport::UnboundBuffer> from =
        context_->createUnboundBuffer(in, count * sizeof(float));
    std::shared_ptr<gloo::transport::UnboundBuffer> to =
        context_->createUnboundBuffer(out, count * sizeof(float));
    const int other = 1 - rank();
    const auto send = [from, other] {
      from->send(other, pingpong_slot);
      from->waitSend();
    };
    return [to, other, send] {
      if (other == 1) send();
      to->recv(other, pingpong_slot);
      to->waitRecv();
      if (other == 0) send();
    };
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
};

}  // namespace
}  // namespace tutti::perf

int main(int count, char** words) {
  const tutti::perf::Arguments arguments(count, words);
  tutti::perf::GlooPeer peer(arguments);
  return tutti::perf::measure_peer(peer, arguments);
}
