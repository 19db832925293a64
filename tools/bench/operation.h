#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tutti/communicator.h>

#include "core/free_delete.h"
#include "tools/bench/pattern.h"

namespace tutti::tools {

// `Measured` lists the operations that can be measured: the collectives and two patterns of
// point-to-point messages.
enum class Measured {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  scan,
  exscan,
  barrier,
  sendrecv,  // each rank sends to the next and receives from the previous one
  pingpong,  // a round trip between two ranks
};

struct MeasuredInfo {
  Measured what;
  std::string_view name;
  std::optional<CollectiveKind> kind;  // none for the point-to-point patterns
  bool reduces = false;
  // Returns the bus bandwidth divided by the algorithm bandwidth (nccl-tests defines both). This
  // ratio says how many times each link carries the vector.
  double bus_factor(int ranks) const;
};

std::span<const MeasuredInfo> measured_infos();
// Returns the entry with this name, or null if there is none.
const MeasuredInfo* find_measured(std::string_view name);

// `BenchOperation` is one rank's side of an operation at one size. It owns the buffers and the test data.
class BenchOperation {
 public:
  BenchOperation(Communicator& communicator, const MeasuredInfo& info, std::uint64_t bytes, DataType type,
                 const ReduceOp& op, const CallOptions& call);

  // Runs the operation once and waits for its end. Throws `Error`.
  void run();
  // Sets the input, and fills the output with values that no correct result contains.
  void fill();
  // Returns the number of wrong elements in the result.
  std::uint64_t count_wrong() const;

  std::uint64_t bytes() const;  // the true size of the vector; bandwidth is computed from it
  std::uint64_t elements() const { return elements_; }

 private:
  void run_pingpong();
  void check(Checker& checker) const;
  Buffer whole(std::byte* data) const { return {data, elements_, pattern_.type()}; }
  Buffer block(std::byte* data) const { return {data, count_, pattern_.type()}; }

  static AlignedBytes allocate(std::uint64_t bytes);

  Communicator& communicator_;
  const MeasuredInfo& info_;
  const ReduceOp op_;
  const CallOptions call_;
  const Pattern pattern_;
  const int rank_;
  const int ranks_;
  std::uint64_t count_;     // elements of one block, or of the vector if there are no blocks
  std::uint64_t elements_;  // elements of the vector
  AlignedBytes in_;
  AlignedBytes out_;
};

}  // namespace tutti::tools
