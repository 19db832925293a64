#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tutti::tools::doctor {

// Two hosts, by their numbers.
using Pair = std::pair<std::size_t, std::size_t>;
// Pairs that can be tested at the same time, since no host is in two of them.
using Round = std::vector<Pair>;

inline constexpr std::size_t most_rounds = 63;

// Returns rounds in which each pair of `hosts` hosts occurs once. There are at most `most_rounds`: with more
// than 64 hosts, each host occurs with about 63 others.
std::vector<Round> plan_rounds(std::size_t hosts);

}  // namespace tutti::tools::doctor
