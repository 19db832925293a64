#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bench/peers/peer.h"

namespace tutti::perf {

// `Arguments` holds words of the form --key=value.
class Arguments {
 public:
  Arguments(int count, char** words) : words_(words + 1, words + count) {}
  std::string text(std::string_view key, std::string_view otherwise) const;
  long number(std::string_view key, long otherwise) const;

 private:
  std::vector<std::string> words_;
};

// Makes the measurements that the arguments ask for. Rank 0 prints a line of CSV as soon as a
// result is known. All ranks call this together. Returns the exit status, which is 1 if a result
// was wrong.
//
//   --peer=NAME            the name in the CSV
//   --collectives=a,b      default: all that the peer has
//   --sizes=4,1K,64M       bytes
//   --budget-ms=25         measuring time per line
//   --warmup-ms=5          warm-up time per line
//   --batches=3            the least number of batches per line
//   --settle-ms=100        time for barriers before the first measurement
//
// Rules:
// - The bytes are the size of a rank's whole vector, as in nccl-tests. For all_gather and gather,
//   this is the gathered vector. For reduce_scatter and scatter, it is the vector before it is
//   split. Blocks have at least one element. So the smallest vectors have more bytes than the line
//   says. Bandwidth is computed from the vector's real size.
// - Every element on every rank is verified before and after timing. No line is printed for a wrong result.
// - After a warm-up, the harness measures batches of K operations, with a barrier before each
//   batch. K is from 1 to 1000, so that a batch takes about 2 ms if possible. The time of a batch
//   is the mean over its operations on the slowest rank. Each line has the minimum, median and 99th
//   percentile over the batches.
// - Operations are out of place if the library can do that, with the same two buffers for all
//   sizes. The buffers are in ordinary page-aligned memory, unless `Peer::allocate` returns other
//   memory.
// - Bandwidth counts GB of 1e9 bytes. The time of a ping-pong is half the round trip.
int measure_peer(Peer& peer, const Arguments& arguments);

}  // namespace tutti::perf
