#include "tests/unit/collectives/board_world.h"

#include <numeric>

namespace tutti::test {

BoardWorld::BoardWorld(int size, std::uint64_t window_bytes)
    : window_bytes_(window_bytes),
      pages_(Board::segment_bytes(size, window_bytes) / sizeof(Page) + 1),
      rings_(static_cast<std::size_t>(size)),
      ranks_(static_cast<std::size_t>(size)),
      driver_({.background = false}) {
  std::iota(ranks_.begin(), ranks_.end(), 0);
  std::vector<PeerInfo> peers(ranks_.size());
  for (const int rank : ranks_) {
    peers[static_cast<std::size_t>(rank)].rank = rank;
    peers[static_cast<std::size_t>(rank)].host = "test";
  }
  for (const int rank : ranks_) {
    MeshOptions options;
    options.rank = rank;
    options.peers = peers;
    meshes_.push_back(std::make_unique<Mesh>(driver_, std::move(options)));
    auto board =
        std::make_unique<Board>(std::make_unique<PlainSegment>(memory(), rings_), rank, size, window_bytes);
    executors_.push_back(
        std::make_unique<SharedExecutor>(std::move(board), *meshes_.back(), ranks_, allocations_, false));
  }
}

std::span<std::byte> BoardWorld::memory() {
  return std::as_writable_bytes(std::span(pages_)).first(Board::segment_bytes(size(), window_bytes_));
}

BoardWorld::Operation& BoardWorld::issue(int rank, CollectiveKind kind, std::uint64_t count, int root,
                                         bool votes) {
  Operation& operation = operations_.emplace_back();
  Problem problem;
  problem.kind = kind;
  problem.rank = rank;
  problem.size = static_cast<int>(ranks_.size());
  problem.root = root;
  problem.count = count;
  problem.element_size = sizeof(std::int32_t);
  problem.window_bytes = window_bytes_;
  const char* name = find_algorithm(kind, "shared") == nullptr ? "shared_direct" : "shared";
  operation.schedule = build_schedule(*find_algorithm(kind, name), problem, {});
  operation.in.resize(input_count(problem));
  std::iota(operation.in.begin(), operation.in.end(), 1000 * rank);
  operation.out.assign(output_count(problem), -1);
  RunBinding& binding = operation.binding;
  binding.input = reinterpret_cast<const std::byte*>(operation.in.data());
  binding.output = reinterpret_cast<std::byte*>(operation.out.data());
  binding.reducer = Reducer(DataType::int32, ReduceOp::sum);
  binding.call = {.kind = kind, .type = DataType::int32, .root = root, .count = count};
  binding.mesh = meshes_[static_cast<std::size_t>(rank)].get();
  binding.ranks = ranks_;
  binding.owner = &operation;
  binding.finished = [](void* owner, const Status& status) {
    ++static_cast<Operation*>(owner)->told;
    static_cast<Operation*>(owner)->status = status;
  };
  binding.failed = binding.finished;
  operation.run = {.schedule = &operation.schedule, .binding = &binding, .votes = votes};
  if (flat && !votes) {
    operation.flat.emplace(operation.schedule, problem.element_size);
    if (operation.flat->usable()) operation.run.flat = &*operation.flat;
  }
  if (executor(rank).submit(operation.run)) ++operation.told;
  return operation;
}

void BoardWorld::settle() {
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& executor : executors_) moved |= executor->advance();
  }
}

std::vector<std::int32_t> BoardWorld::expected(CollectiveKind kind, int rank, int size, std::uint64_t count,
                                               int root) {
  std::vector<std::int32_t> out;
  const auto append = [&](int from, int factor, int sum) {
    for (std::uint64_t i = 0; i < count; ++i) {
      out.push_back(1000 * from + factor * static_cast<std::int32_t>(i) + sum);
    }
  };
  if (kind == CollectiveKind::all_reduce) append(0, size, 1000 * size * (size - 1) / 2);
  if (kind == CollectiveKind::broadcast) append(root, 1, 0);
  if (kind == CollectiveKind::gather && rank == root) {
    for (int from = 0; from < size; ++from) append(from, 1, 0);
  }
  return out;
}

}  // namespace tutti::test
