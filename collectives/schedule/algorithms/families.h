#pragma once

#include <span>

namespace tutti {

struct Algorithm;

// Each function returns the algorithms that a file of this folder defines. `algorithms()` joins all of them
// in one list.
std::span<const Algorithm> all_reduce_algorithms();
std::span<const Algorithm> reduce_algorithms();
std::span<const Algorithm> broadcast_algorithms();
std::span<const Algorithm> all_gather_algorithms();
std::span<const Algorithm> reduce_scatter_algorithms();
std::span<const Algorithm> all_to_all_algorithms();
std::span<const Algorithm> gather_algorithms();
std::span<const Algorithm> scatter_algorithms();
std::span<const Algorithm> scan_algorithms();
std::span<const Algorithm> barrier_algorithms();
std::span<const Algorithm> two_level_algorithms();
std::span<const Algorithm> shared_algorithms();
std::span<const Algorithm> registered_algorithms();

}  // namespace tutti
