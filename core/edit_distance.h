#pragma once

#include <cstddef>
#include <string_view>

namespace tutti {

// The least number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`
// (optimal string alignment). For telling which known name somebody meant.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace tutti
