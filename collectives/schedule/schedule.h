#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/message.h"

namespace tutti {

// The types in this file describe as data what one rank does in one collective: a list of steps over slices
// of buffers. The types hold no pointers to data, since each run of a schedule has its own buffers. If all
// ranks of a group are on one host, each rank has a `window`, which all ranks read.
enum class BufferId : std::uint8_t { input, output, scratch, window };

inline constexpr std::int32_t own = -1;
inline constexpr std::int32_t everyone = -2;

// A `Slice` is `count` elements from element `offset` of a buffer. The buffer is this rank's own unless
// `owner` is a rank. The buffer of another rank must be a window, or memory that its owner has registered.
// The output of a reduce may belong to `everyone`. In that case each element of the result is written to the
// outputs of all ranks, which must all be registered.
struct Slice {
  BufferId buffer = BufferId::input;
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  std::int32_t owner = own;
  friend bool operator==(const Slice&, const Slice&) = default;
};

enum class StepKind : std::uint8_t {
  send,         // left -> peer
  recv,         // peer -> out
  recv_reduce,  // out = left op message, or message op left: `left` is the local operand
  copy,         // out = left
  reduce,       // out = left op right
  scale,        // out = left * the operation's factor (premultiplied sum)
  divide,       // out = left / number of ranks (average)
  signal,       // publishes that all steps before it are done, as this rank's `index`-th signal
  await,        // waits until `peer` has given its `index`-th signal (0: does not wait)
};

struct Step {
  StepKind kind = StepKind::copy;
  // Says which operand of a recv_reduce the message is. On every rank, the data of lower ranks is the left
  // operand. So all ranks combine the same operands in the same order and get the same bits.
  MessageSide message_side = MessageSide::right;
  std::int32_t peer = -1;
  // This is the number of this message among those from its sender to its receiver within the collective.
  // Both sides count in the order in which the algorithm emitted the messages. Sends and receives are matched
  // by (context, sequence) and this number, so the order in which steps become ready does not matter.
  std::uint32_t index = 0;
  Slice left;
  Slice right;
  Slice out;
  std::uint32_t dependencies = 0;     // steps that must complete before this one may start
  std::uint32_t first_successor = 0;  // index into Schedule::successors
  std::uint32_t successor_count = 0;
};

// A `Schedule` is immutable once built; concurrent runs share it.
//
// There are two kinds. Schedules of messages run in the order of their dependencies. *Shared* schedules are
// for ranks that share memory. Their steps read and write the ranks' windows, and signals order these
// accesses. A rank executes them one by one in the order in which they were emitted: one processor executes
// all of them, so none could overlap.
struct Schedule {
  // Steps [first, last) of a shared schedule run `times` times. Each time, all slices except those of windows
  // start `stride` elements further on, and the numbers of signals grow by `signals`. So a schedule stays
  // short however long the vectors are.
  struct Repeat {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint64_t times = 0;
    std::uint64_t stride = 0;
    std::uint32_t signals = 0;
  };

  std::vector<Step> steps;                // in the algorithm's straight-line order
  std::vector<std::uint32_t> successors;  // grouped by step
  std::vector<std::uint32_t> ready;       // steps with no dependency
  std::uint64_t scratch_count = 0;        // elements of scratch that a run must provide
  bool shared = false;
  std::uint64_t window_count = 0;  // elements of each window that are in use; equal on all ranks
  Repeat repeat = {};

  // Returns the steps that depend on `step`.
  std::span<const std::uint32_t> successors_of(const Step& step) const {
    return {successors.data() + step.first_successor, step.successor_count};
  }
  // Returns one line per step: "12 recv_reduce from 3 #1 output[0,512) <- output[0,512) op message, after 2".
  std::string to_string() const;
};

}  // namespace tutti
