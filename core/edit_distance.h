#pragma once

#include <cstddef>
#include <string_view>

namespace tutti {

// `edit_distance` returns the least number of insertions, deletions, replacements and swaps of adjacent
// characters that turn `a` into `b` (optimal string alignment). It is used to find the known name that is
// most similar to a misspelt name.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace tutti
