#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tutti::tools::doctor {

// A `Pair` holds the numbers of two hosts.
using Pair = std::pair<std::size_t, std::size_t>;
// A `Round` is a set of pairs that can be tested at the same time, since no host is in two of them.
using Round = std::vector<Pair>;

inline constexpr std::size_t most_rounds = 63;

// Returns rounds in which each pair of `hosts` hosts occurs once. With more than 64 hosts, there are
// only `most_rounds` rounds, so each host is tested with only about 63 others.
std::vector<Round> plan_rounds(std::size_t hosts);

}  // namespace tutti::tools::doctor
