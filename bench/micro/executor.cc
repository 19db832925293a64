// Measures how much time the executor adds to the work of a step, and how long a whole call takes.
#include <array>
#include <cstdlib>
#include <vector>

#include <benchmark/benchmark.h>

#include <tutti/tutti.h>

#include "bench/micro/steps.h"
#include "collectives/run/run.h"
#include "collectives/schedule/schedule_builder.h"

namespace tutti::perf {
namespace {

// An `Executor` runs one schedule, again and again, on this thread and over a mesh of one rank. A message
// from the rank to itself arrives before the send returns.
class Executor final : private ContextEvents {
 public:
  explicit Executor(const Schedule& schedule) : mesh_(driver_, options()), run_(schedule) {
    const DriverGuard guard(driver_);
    if (!mesh_.start().ok()) std::abort();
    mesh_.attach(context, *this);
    binding_.input = reinterpret_cast<const std::byte*>(input_.data());
    binding_.output = reinterpret_cast<std::byte*>(output_.data());
    binding_.reducer = Reducer(DataType::float32, ReduceOp::sum);
    binding_.context = context;
    binding_.mesh = &mesh_;
    binding_.ranks = ranks_;
    binding_.owner = this;
    binding_.finished = [](void* owner, const Status&) { ++static_cast<Executor*>(owner)->finished_; };
    binding_.failed = [](void*, const Status&) { std::abort(); };
  }
  ~Executor() override { mesh_.shutdown(Deadline::after(std::chrono::seconds(1))); }

  void measure(benchmark::State& state) {
    const DriverGuard guard(driver_);
    std::uint64_t started = 0;
    for (auto iteration : state) {
      ++binding_.sequence;
      run_.start(binding_);
      ++started;
    }
    if (finished_ != started) state.SkipWithError("a run did not finish within its start");
  }

 private:
  static constexpr std::uint32_t context = 1;
  static MeshOptions options() {
    MeshOptions made;
    made.peers.resize(1);
    return made;
  }
  static DriverOptions by_hand() {
    DriverOptions made;
    made.background = false;
    return made;
  }
  Known operation(std::uint64_t) const override { return {&binding_.call, false}; }
  void on_mismatch(int, std::uint64_t, const Fingerprint*, const Status&) override { std::abort(); }
  void on_abort(int, const Status&) override { std::abort(); }
  void on_peer_down(int, const Status&) override {}

  Driver driver_{by_hand()};
  Mesh mesh_;
  Run run_;
  RunBinding binding_;
  std::vector<float> input_ = std::vector<float>(steps * elements, 1);
  std::vector<float> output_ = std::vector<float>(steps * elements);
  const std::array<int, 1> ranks_ = {0};
  std::uint64_t finished_ = 0;
};

template <class Emit>
void measure(benchmark::State& state, const Emit& emit) {
  ScheduleBuilder builder(stepwise_problem(0, 1));
  emit(builder);
  const Schedule schedule = std::move(builder).finish();
  Executor(schedule).measure(state);
  count_steps(state, schedule.steps.size());
}

void independent_copies(benchmark::State& state) {
  measure(state, [](ScheduleBuilder& builder) {
    for (std::uint32_t i = 0; i < steps; ++i)
      builder.copy(stepwise_slice(BufferId::input, i), stepwise_slice(BufferId::output, i));
  });
}

void chain_of_copies(benchmark::State& state) {
  measure(state, [](ScheduleBuilder& builder) {
    builder.copy(stepwise_slice(BufferId::input, 0), stepwise_slice(BufferId::output, 0));
    for (std::uint32_t i = 1; i < steps; ++i)
      builder.copy(stepwise_slice(BufferId::output, i - 1), stepwise_slice(BufferId::output, i));
  });
}

void chain_of_reductions(benchmark::State& state) {
  measure(state, [](ScheduleBuilder& builder) {
    builder.copy(stepwise_slice(BufferId::input, 0), stepwise_slice(BufferId::output, 0));
    for (std::uint32_t i = 1; i < steps; ++i)
      builder.reduce(stepwise_slice(BufferId::output, i - 1), stepwise_slice(BufferId::input, i),
                     stepwise_slice(BufferId::output, i));
  });
}

// Each message takes two steps: a send and the matching receive.
void messages_to_itself(benchmark::State& state) {
  measure(state, [](ScheduleBuilder& builder) {
    for (std::uint32_t i = 0; i < steps; ++i) {
      builder.recv(0, stepwise_slice(BufferId::output, i));
      builder.send(0, stepwise_slice(BufferId::input, i));
    }
  });
}

// Measures a whole call in a world of one rank, which exchanges no messages.
void all_reduce_alone(benchmark::State& state) {
  Communicator communicator = init(InitOptions{.rank = 0, .world_size = 1});
  std::array<float, elements> in{};
  std::array<float, elements> out{};
  for (auto iteration : state)
    communicator.all_reduce(std::span<const float>(in), std::span(out), ReduceOp::sum).wait();
}

BENCHMARK(independent_copies)->Name("executor/independent copies");
BENCHMARK(chain_of_copies)->Name("executor/chain of copies");
BENCHMARK(chain_of_reductions)->Name("executor/chain of reductions");
BENCHMARK(messages_to_itself)->Name("executor/messages to itself");
BENCHMARK(all_reduce_alone)->Name("call/all_reduce of 8 bytes, world of one");

}  // namespace
}  // namespace tutti::perf
