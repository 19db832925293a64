#pragma once

#include <cstdint>
#include <span>

#include <tutti/core/types.h>

namespace tutti {

// What an algorithm needs to know to emit one rank's steps, and nothing else: no pointers, and besides `rank`
// nothing that could make the messages of two ranks disagree.
//
// Buffers, in elements, for n = `count` and p = `size`:
//   all_reduce, scan, exscan   input n, output n
//   reduce                     input n, output n (root only)
//   broadcast                  input n (root only), output n; the root's output is written too unless in place
//   all_gather, gather         input n, output n*p (gather: root only)
//   reduce_scatter, scatter    input n*p (scatter: root only), output n
//   all_to_all                 input n*p, output n*p
//   *_v                        as above with counts[r] for rank r's block, blocks packed in rank order
struct Problem {
  CollectiveKind kind = CollectiveKind::barrier;
  int rank = 0;
  int size = 1;
  int root = 0;
  std::uint64_t count = 0;
  std::uint32_t element_size = 1;
  bool commutative = true;
  bool average = false;         // divide at the end
  bool premultiplied = false;   // scale at the start
  // In place: all_reduce, reduce (root), broadcast, scan, exscan, all_to_all: input is output. all_gather, gather
  // (root): input is the rank's own block of output. reduce_scatter, scatter (root): output is the rank's own
  // block of input. Changes local steps only, never messages.
  bool in_place = false;
  // all_gather_v, reduce_scatter_v: counts of every rank, known to all. gather_v, scatter_v: known at the root;
  // elsewhere only counts[rank] is. all_to_all_v: what this rank sends to each, and receives from each.
  std::span<const std::uint64_t> input_counts = {};
  std::span<const std::uint64_t> output_counts = {};
};

// Knobs of an algorithm, agreed by all ranks.
struct Tuning {
  std::uint32_t radix = 2;           // k of k-nomial and of dissemination
  std::uint64_t segment_bytes = 0;   // pipeline unit; 0: do not segment
  std::uint32_t window = 8;          // messages in flight for windowed exchanges
};

}  // namespace tutti
