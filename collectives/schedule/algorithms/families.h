#pragma once

#include <span>

namespace tutti {

struct Algorithm;

// These functions return the algorithms that the files of this folder define. `algorithms()` joins them.
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
