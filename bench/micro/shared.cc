// Measures how much time the executor of shared-memory schedules adds to the work of a step. Two ranks take
// turns on one thread, so neither spends time on waiting.
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/micro/steps.h"
#include "collectives/run/shared_executor.h"
#include "collectives/schedule/schedule_builder.h"

namespace tutti::perf {
namespace {

constexpr int ranks = 2;
constexpr std::uint64_t window_bytes = 64 << 10;
constexpr std::array<int, ranks> world_ranks = {0, 1};

using Memory = std::shared_ptr<std::byte>;

Memory zeroed(std::uint64_t bytes) {
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)), std::free);
  std::memset(memory.get(), 0, bytes);
  return memory;
}

struct SilentBell final : SharedBell {
  void ring() const override {}
};

// `Segment` is memory that two ranks on this thread share. The ranks never sleep, so the functions
// that wake a rank do nothing.
class Segment final : public SharedSegment {
 public:
  Segment(Memory memory, std::uint64_t bytes) : memory_(std::move(memory)), bytes_(bytes) {}
  std::span<std::byte> memory() const override { return {memory_.get(), bytes_}; }
  const SharedBell& bell(int) const override { return bell_; }

 private:
  Memory memory_;
  std::uint64_t bytes_;
  SilentBell bell_;
};

class NothingRegistered final : public Registry {
 public:
  Place find(const void*, std::uint64_t) const override { return {}; }
  std::byte* resolve(int, const Place&) const override { return nullptr; }
};

class Rank {
 public:
  Rank(int rank, const Mesh& mesh, const Memory& memory, std::uint64_t bytes, const Schedule& schedule)
      : executor_(
            std::make_unique<Board>(std::make_unique<Segment>(memory, bytes), rank, ranks, window_bytes),
            mesh, world_ranks, registry_, false) {
    binding_.input = reinterpret_cast<const std::byte*>(input_.data());
    binding_.output = reinterpret_cast<std::byte*>(output_.data());
    binding_.reducer = Reducer(DataType::float32, ReduceOp::sum);
    binding_.owner = this;
    binding_.finished = [](void* owner, const Status&) { static_cast<Rank*>(owner)->finished_ = true; };
    binding_.failed = [](void*, const Status&) { std::abort(); };
    run_.schedule = &schedule;
    run_.binding = &binding_;
  }
  void begin() {
    finished_ = false;
    if (executor_.submit(run_)) finished_ = true;
  }
  bool finished() const { return finished_; }
  void advance() { executor_.advance(); }

 private:
  NothingRegistered registry_;
  SharedExecutor executor_;
  RunBinding binding_;
  SharedRun run_;
  bool finished_ = false;
  std::vector<float> input_ = std::vector<float>(steps * elements, 1);
  std::vector<float> output_ = std::vector<float>(steps * elements);
};

template <class Emit>
void measure(benchmark::State& state, const Emit& emit) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks; ++rank) {
    ScheduleBuilder builder(stepwise_problem(rank, ranks));
    emit(builder, 1 - rank);
    schedules.push_back(std::move(builder).finish());
  }
  const std::uint64_t bytes = Board::segment_bytes(ranks, window_bytes);
  const Memory memory = zeroed(bytes);
  Driver driver({.background = false});
  MeshOptions options;
  options.peers.resize(ranks);
  Mesh mesh(driver, std::move(options));  // only needed to name ranks in an error about different calls
  Rank first(0, mesh, memory, bytes, schedules[0]);
  Rank second(1, mesh, memory, bytes, schedules[1]);
  for (auto iteration : state) {
    first.begin();
    second.begin();
    while (!first.finished() || !second.finished()) {
      first.advance();
      second.advance();
    }
  }
  count_steps(state, schedules[0].steps.size() + schedules[1].steps.size());
}

void copies(benchmark::State& state) {
  measure(state, [](ScheduleBuilder& builder, int) {
    for (std::uint32_t i = 0; i < steps; ++i)
      builder.copy(stepwise_slice(BufferId::input, i), stepwise_slice(BufferId::output, i));
  });
}

void reductions(benchmark::State& state) {
  measure(state, [](ScheduleBuilder& builder, int) {
    builder.copy(stepwise_slice(BufferId::input, 0), stepwise_slice(BufferId::output, 0));
    for (std::uint32_t i = 1; i < steps; ++i)
      builder.reduce(stepwise_slice(BufferId::output, i - 1), stepwise_slice(BufferId::input, i),
                     stepwise_slice(BufferId::output, i));
  });
}

void signals(benchmark::State& state) {
  measure(state, [](ScheduleBuilder& builder, int) {
    for (std::uint32_t i = 0; i < steps; ++i) builder.signal();
  });
}

// A rank's executor returns if the signal that it awaits is missing. The other rank then continues.
void signals_and_awaits(benchmark::State& state) {
  measure(state, [](ScheduleBuilder& builder, int other) {
    for (std::uint32_t i = 0; i < steps / 2; ++i) builder.await(other, builder.signal());
  });
}

BENCHMARK(copies)->Name("shared executor/copies");
BENCHMARK(reductions)->Name("shared executor/reductions");
BENCHMARK(signals)->Name("shared executor/signals");
BENCHMARK(signals_and_awaits)->Name("shared executor/signals and awaits, in turns");

}  // namespace
}  // namespace tutti::perf
