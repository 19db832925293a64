#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <span>
#include <vector>

#include <tutti/tutti.h>

#include "../common/print.h"

// Returns the FNV-1a hash of the bits of all weights.
inline std::uint64_t hash(const std::vector<float>& weights) {
  std::uint64_t result = 0xcbf29ce484222325;
  for (const std::byte byte : std::as_bytes(std::span(weights))) {
    result = (result ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  }
  return result;
}

// Returns on all ranks whether the weights are equal on all ranks. Rank 0 also prints the result.
inline bool compare_weights(tutti::Communicator& comm, const std::vector<float>& weights) {
  const std::array<std::uint64_t, 1> mine{hash(weights)};
  std::vector<std::uint64_t> hashes(comm.size());
  comm.all_gather(mine, hashes).wait();
  for (int r = 0; r < comm.size(); ++r) {
    if (hashes[r] == hashes[0]) continue;
    if (comm.rank() == 0) print("the weights of ", comm.describe(r), " differ from those of rank 0");
    return false;
  }
  if (comm.rank() == 0) {
    print("all ", comm.size(), " ranks hold bitwise equal weights (hash ", std::hex, mine[0], ")");
  }
  return true;
}
