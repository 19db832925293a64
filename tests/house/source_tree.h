#pragma once

#include <string>
#include <vector>

namespace tutti::house {

// A `SourceFile` is a C++ file of the repository: its path from the root ("include/tutti/status.h") and its
// lines.
struct SourceFile {
  std::string path;
  std::vector<std::string> lines;
};

// Returns all .h and .cc files of the tree, sorted by path. The files are read only once.
const std::vector<SourceFile>& source_tree();

// Returns the paths, from the root, of the files that `file` includes by `#include <tutti/...>` or
// `#include "..."`.
std::vector<std::string> includes_of(const SourceFile& file);

// Returns whether `path`, which is relative to the root, is a file.
bool is_in_the_tree(const std::string& path);

// Returns the lines of a list that the build wrote, such as "compiled_headers.txt".
std::vector<std::string> build_list(const std::string& name);

}  // namespace tutti::house
