#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/house/source_tree.h"

namespace tutti::house {

// A `Function` is the place where a function is defined, from the first line of its definition to the line
// with its closing brace. Lambdas belong to the function that contains them.
struct Function {
  std::string head;            // the text before the body, without line ends
  std::size_t first_line = 0;  // counted from 1
  std::size_t last_line = 0;

  std::size_t lines() const { return last_line - first_line + 1; }
};

// Returns the functions that a file defines, in order. The search looks only at braces and the text before
// them. So it relies on clang-format's layout: a space before the brace of a body, and no space before the
// brace of an initialiser.
std::vector<Function> functions_of(const SourceFile& file);

}  // namespace tutti::house
