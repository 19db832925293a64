#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/run/allocation.h"
#include "collectives/run/shared_executor.h"
#include "collectives/schedule/algorithm.h"

namespace tutti::test {

// A `PlainSegment` stands for a group's shared memory, but consists of ordinary memory of one process.
class PlainSegment final : public SharedSegment {
 public:
  // Counts in `rings` how often each rank's bell rings.
  PlainSegment(std::span<std::byte> memory, std::vector<int>& rings) : memory_(memory) {
    for (int& each : rings) bells_.push_back(CountingBell(each));
  }
  std::span<std::byte> memory() const override { return memory_; }
  const SharedBell& bell(int member) const override { return bells_[static_cast<std::size_t>(member)]; }

 private:
  struct CountingBell final : SharedBell {
    explicit CountingBell(int& counter) : rings(counter) {}
    void ring() const override { ++rings; }
    int& rings;
  };
  const std::span<std::byte> memory_;
  std::vector<CountingBell> bells_;
};

// A `BoardWorld` has the shared executors of a few ranks over one piece of memory. One thread
// drives all of them, in the order that the test chooses.
class BoardWorld {
 public:
  explicit BoardWorld(int size, std::uint64_t window_bytes = 64 * 1024);

  struct Operation {
    std::vector<std::int32_t> in;
    std::vector<std::int32_t> out;
    int told = 0;  // how often the end of the operation was reported
    Status status = {};
    Schedule schedule = {};
    std::optional<FlatSchedule> flat = {};
    RunBinding binding = {};
    SharedRun run = {};
  };

  bool flat = true;  // schedules run in their flat form where possible

  int size() const { return static_cast<int>(ranks_.size()); }
  SharedExecutor& executor(int rank) { return *executors_[static_cast<std::size_t>(rank)]; }
  // Starts an operation that lives as long as this object. Element i of rank r's input is 1000 r + i.
  Operation& issue(int rank, CollectiveKind kind, std::uint64_t count, int root = 0, bool votes = false);
  // Runs the ranks until no rank can make progress.
  void settle();
  // Returns the expected result of an operation.
  static std::vector<std::int32_t> expected(CollectiveKind kind, int rank, int size, std::uint64_t count,
                                            int root);

  std::span<std::byte> memory();
  // Returns the table of allocations that all ranks know. The table is empty at first.
  AllocationTable& allocations() { return allocations_; }
  int rings(int rank) const { return rings_[static_cast<std::size_t>(rank)]; }

 private:
  struct alignas(4096) Page {
    std::byte bytes[4096];
  };

  const std::uint64_t window_bytes_;
  std::vector<Page> pages_;
  std::vector<int> rings_;
  std::vector<int> ranks_;
  AllocationTable allocations_;
  Driver driver_;
  // The meshes are never started, since they are only needed to name ranks.
  std::vector<std::unique_ptr<Mesh>> meshes_;
  std::vector<std::unique_ptr<SharedExecutor>> executors_;
  std::deque<Operation> operations_;
};

}  // namespace tutti::test
