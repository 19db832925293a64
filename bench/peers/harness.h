#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bench/peers/peer.h"

namespace tutti::perf {

// `Arguments` are words of the form --key=value.
class Arguments {
 public:
  Arguments(int count, char** words) : words_(words + 1, words + count) {}
  std::string text(std::string_view key, std::string_view otherwise) const;
  long number(std::string_view key, long otherwise) const;

 private:
  std::vector<std::string> words_;
};

// Measures what the arguments ask for. Rank 0 prints a line of CSV for each figure at once. All ranks call
// this together. Returns the exit status: 1 if a result was wrong.
//
//   --peer=NAME            the name in the CSV
//   --collectives=a,b      default: all that the peer has
//   --sizes=4,1K,64M       bytes
//   --budget-ms=25 --warmup-ms=5 --batches=3   measuring and warming up per figure, fewest batches
//   --settle-ms=100        barriers before the first figure
//
// Rules:
// - bytes are nccl-tests' "size": the whole vector of a rank; for all_gather and gather the gathered one, for
//   reduce_scatter and scatter the one before it is split. Blocks have at least one element, so at the
//   smallest sizes the true vector is larger than the bytes printed; bandwidth uses the true size.
// - Every element on every rank is verified before and after timing; a wrong result prints no line.
// - After a warm-up, batches of K operations in a row, K such that a batch takes about 2 ms, with a barrier
//   before each. A batch's figure is the mean over its operations on each rank, then the largest over the
//   ranks. Printed are minimum, median and 99th percentile over the batches.
// - Out of place, on ordinary page-aligned memory, the same two buffers for all sizes.
// - Bandwidth in GB = 1e9 bytes; a ping-pong's figure is half the round trip.
int measure_peer(Peer& peer, const Arguments& arguments);

}  // namespace tutti::perf
