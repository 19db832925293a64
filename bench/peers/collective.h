#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tutti::perf {

// The operations that are measured for every peer. Ping-pong is for two ranks.
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
// Returns whether the vector is made of one block for each rank.
bool has_blocks(Collective collective);
// Returns how many times each link carries the vector, as nccl-tests define bus bandwidth.
double bus_factor(Collective collective, int ranks);

// The test data: small whole numbers that differ from rank to rank, so that sums are exact in every order.
void fill_input(std::span<float> out, int rank);
// Returns the number of wrong elements in the result of `rank`, where `count` is the length of the vector or
// of one block.
std::size_t count_wrong(Collective collective, const float* out, std::size_t count, int rank, int ranks);

}  // namespace tutti::perf
