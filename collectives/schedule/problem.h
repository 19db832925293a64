#pragma once

#include <cstdint>
#include <span>

#include <tutti/types.h>

namespace tutti {

class Topology;

// A `Problem` is everything that an algorithm may read to emit one rank's steps. It has no pointers to data.
// The `rank` differs from rank to rank. Other values may differ only if the messages of the ranks still
// match.
//
// The sizes of the buffers, in elements, for n = `count` and p = `size`:
//
// clang-format off
//   all_reduce, scan, exscan   input n, output n
//   reduce                     input n, output n (root only)
//   broadcast                  input n (root only), output n; the root's output is written too unless in place
//   all_gather, gather         input n, output n*p (gather: root only)
//   reduce_scatter, scatter    input n*p (scatter: root only), output n
//   all_to_all                 input n*p, output n*p
//   *_v                        as above with counts[r] for rank r's block, blocks packed in rank order
// clang-format on
struct Problem {
  CollectiveKind kind = CollectiveKind::barrier;
  int rank = 0;
  int size = 1;
  int root = 0;
  std::uint64_t count = 0;
  std::uint32_t element_size = 1;
  bool commutative = true;
  bool average = false;        // divide at the end
  bool premultiplied = false;  // scale at the start
  // This is true if combining may fail (only a user's operation can fail). In that case no rank finishes the
  // collective before all ranks have combined.
  bool agrees = false;
  // This is true if the operation is in place. In all_reduce, reduce (root), broadcast, scan, exscan and
  // all_to_all(_v), the input and the output are the same buffer. In all_gather(_v) and gather(_v) (root),
  // the input is the rank's own block of the output. In reduce_scatter(_v) and scatter(_v) (root), the output
  // is the rank's own block of the input, and the other blocks keep their values. In place, only local steps
  // are different; the messages are the same.
  bool in_place = false;
  // These are the counts of the _v kinds. In all_gather_v (output) and reduce_scatter_v (input),
  // all ranks know the counts of every rank. In gather_v (output) and scatter_v (input), the root
  // has the counts of every rank. Any other rank has a single entry, its own count. In
  // all_to_all_v, they are the counts that this rank sends to each rank, and receives from each.
  std::span<const std::uint64_t> input_counts = {};
  std::span<const std::uint64_t> output_counts = {};
  // This is the size in bytes of each rank's window if all ranks share memory; otherwise 0. The ranks agree
  // on it at init.
  std::uint64_t window_bytes = 0;
  // This is true if the inputs and outputs of all ranks are memory that all of them may read and
  // write (`Communicator::allocate`). The ranks find this out by a vote (see SharedExecutor).
  bool registered = false;
  // Says which ranks share a host; null if all ranks are on one host. The topology is equal on all ranks, and
  // must outlive the problem.
  const Topology* topology = nullptr;
};

// Returns whether one schedule serves both problems. It does if the problems are equal, including the counts
// that their spans refer to.
bool same_schedule(const Problem& a, const Problem& b);

// `Tuning` holds the knobs of an algorithm. They are equal on all ranks.
struct Tuning {
  std::uint32_t radix = 2;          // k of k-nomial trees and of dissemination
  std::uint64_t segment_bytes = 0;  // pipeline unit; 0: do not segment
  std::uint32_t window = 8;         // messages in flight for windowed exchanges
};

// These two functions return the number of elements of this rank's input and of its output; 0 if it has none.
std::uint64_t input_count(const Problem& problem);
std::uint64_t output_count(const Problem& problem);
// Returns whether outputs should be written past the caches (core/stream_copy.h). That is faster if the
// buffers of all ranks together are large.
bool passes_caches(const Problem& problem);
// In all_gather, gather, reduce_scatter, scatter and their _v forms, returns where this rank's own block
// starts in the buffer that holds a block for every rank. Returns 0 for other kinds.
std::uint64_t own_block_offset(const Problem& problem);

}  // namespace tutti
