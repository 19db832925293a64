#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/house/source_tree.h"

namespace tutti::house {

// A `Function` is the place where a function is defined, from the line on which its definition begins to the
// one with its closing brace. Lambdas belong to the function that they stand in.
struct Function {
  std::string head;            // what stands before the body, without line ends
  std::size_t first_line = 0;  // from 1
  std::size_t last_line = 0;

  std::size_t lines() const { return last_line - first_line + 1; }
};

// Returns the functions that a file defines, in order. It reads braces, and what stands before them, so it
// understands sources only as clang-format leaves them: a space before a body's brace, none before that of a
// brace initialiser.
std::vector<Function> functions_of(const SourceFile& file);

}  // namespace tutti::house
