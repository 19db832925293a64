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
  // True if combining may fail (only a user's operation can fail). Then no rank finishes the collective
  // before all ranks have combined.
  bool agrees = false;
  // True if the operation is in place. all_reduce, reduce (root), broadcast, scan, exscan, all_to_all(_v):
  // input is output. all_gather(_v), gather(_v) (root): input is the rank's own block of output.
  // reduce_scatter(_v), scatter(_v) (root): output is the rank's own block of input, and the other blocks
  // keep their values. Whether an operation is in place changes only local steps, never messages.
  bool in_place = false;
  // all_gather_v (output), reduce_scatter_v (input): the counts of every rank, known to all. gather_v
  // (output), scatter_v (input): at the root the counts of every rank; elsewhere a single entry, this rank's
  // own count. all_to_all_v: the counts that this rank sends to each rank, and receives from each.
  std::span<const std::uint64_t> input_counts = {};
  std::span<const std::uint64_t> output_counts = {};
  // This is the size in bytes of each rank's window if all ranks share memory; otherwise 0. The ranks agree
  // on it at init.
  std::uint64_t window_bytes = 0;
  // True if the inputs and outputs of all ranks are memory that all of them may read and write
  // (`Communicator::allocate`). The ranks find this out by a vote (see SharedExecutor).
  bool registered = false;
  // Says which ranks share a host; null if all of them do. All ranks agree on it. It must outlive the
  // problem.
  const Topology* topology = nullptr;
};

// Returns whether one schedule serves both problems. It does if they are equal, including the counts that
// their spans refer to.
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
// Returns where this rank's own block starts in the buffer that holds a block for every rank (all_gather,
// gather, reduce_scatter, scatter and their _v forms); 0 for other kinds.
std::uint64_t own_block_offset(const Problem& problem);

}  // namespace tutti
