#pragma once

#include <string>
#include <vector>

namespace tutti::house {

// A C++ file of the repository: its path from the root ("core/status.h") and its lines.
struct SourceFile {
  std::string path;
  std::vector<std::string> lines;
};

// All .h and .cc files of the house's folders, read once, by path.
const std::vector<SourceFile>& source_tree();

// What `#include <tutti/...>` lines name ("core/status.h"), and `#include "..."` lines as they stand.
struct Includes {
  std::vector<std::string> ours;
  std::vector<std::string> quoted;
};
Includes includes_of(const SourceFile& file);

// The lines of a list that the build wrote: "compiled_headers.txt" or "public_headers.txt".
std::vector<std::string> build_list(const std::string& name);

}  // namespace tutti::house
