#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tutti::perf {

// `Collective` lists the operations that are measured. `pingpong` is for two ranks.
enum class Collective {
  barrier,
  broadcast,
  reduce,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  pingpong,
};

inline constexpr int root = 0;

std::span<const Collective> all_collectives();
std::string_view name_of(Collective collective);
// Returns whether the collective's vector consists of one block for each rank.
bool has_blocks(Collective collective);
// Returns bus bandwidth divided by bandwidth (nccl-tests defines both). This is how many times each
// link carries the vector.
double bus_factor(Collective collective, int ranks);

// Fills `out` with the test data of a rank, which differ between ranks. The data are small whole
// numbers, so that sums are exact in every order of summation.
void fill_input(std::span<float> out, int rank);
// Returns the number of wrong elements in the result of `rank`. `count` is the length of the vector, or of
// one block if the collective has blocks.
std::size_t count_wrong(Collective collective, const float* out, std::size_t count, int rank, int ranks);

}  // namespace tutti::perf
