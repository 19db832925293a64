#pragma once

#include <vector>

// These functions say which ranks are linked on the control plane. The ranks that are present, in ascending
// order, form a ring; each is linked with those 1, 2, 4, 8 ... places away in either direction. That makes
// fewer than 2 log2(p) links for each rank, any two ranks are at most half of log2(p) links apart, and as
// many neighbours must go at once before any rank is cut off. All functions are pure: ranks with the same
// information compute the same links.
namespace tutti::liveness {

// The neighbours of `rank`, ascending. `present` is ascending and holds it.
std::vector<int> neighbours(const std::vector<int>& present, int rank);

// The rank of `linked` that is nearest to `target` on the ring, or -1 if there is none. While all links of
// the ring are there, it is nearer than `rank` itself.
int next_hop(const std::vector<int>& present, int target, const std::vector<int>& linked);

}  // namespace tutti::liveness
