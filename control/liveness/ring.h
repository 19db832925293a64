#pragma once

#include <vector>

// These functions say which ranks are linked on the control plane. The present ranks, in ascending order,
// form a ring. Each rank is linked with the ranks that are 1, 2, 4, 8 ... places away in either direction. So
// each rank has at most 2 ceil(log2(p)) links, and any two ranks are at most ceil(log2(p) / 2) links apart. A
// rank is cut off from the others only if all its neighbours fail at once. All functions are pure: ranks that
// know the same present ranks compute the same links.
namespace tutti::liveness {

// Returns the neighbours of `rank`, ascending. `present` is ascending and contains `rank`.
std::vector<int> neighbours(const std::vector<int>& present, int rank);

// Returns the rank of `linked` that is nearest to `target` on the ring, or -1 if there is none. If `linked`
// holds all neighbours of a rank, the result is nearer to `target` than that rank itself.
int next_hop(const std::vector<int>& present, int target, const std::vector<int>& linked);

}  // namespace tutti::liveness
