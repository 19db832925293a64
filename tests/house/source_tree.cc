#include "tests/house/source_tree.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace tutti::house {
namespace {

namespace fs = std::filesystem;

constexpr std::array folders = {"include",  "core",  "transport", "control", "rendezvous", "collectives",
                                "bindings", "tools", "bench",     "tests",   "examples"};

SourceFile read(const fs::path& path, const fs::path& root) {
  SourceFile file{path.lexically_relative(root).string(), {}};
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

std::vector<SourceFile> read_all() {
  const fs::path root(TUTTI_SOURCE_DIR);
  std::vector<SourceFile> files;
  for (const char* folder : folders) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".h" || extension == ".cc") files.push_back(read(entry.path(), root));
    }
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

}  // namespace

const std::vector<SourceFile>& source_tree() {
  static const std::vector<SourceFile> files = read_all();
  return files;
}

namespace {

// Returns the path, relative to the root, of the file that `file` includes as `included`. Examples
// are also built outside of the tree. So they include files by paths that start at their own folder
// or at examples/.
std::string from_root(const std::string& file, const std::string& included) {
  if (!file.starts_with("examples/")) return included;
  const std::string beside = (fs::path(file).parent_path() / included).string();
  return is_in_the_tree(beside) ? beside : "examples/" + included;
}

}  // namespace

std::vector<std::string> includes_of(const SourceFile& file) {
  constexpr std::string_view ours = "#include <tutti/";
  constexpr std::string_view quoted = "#include \"";
  std::vector<std::string> paths;
  for (const std::string& line : file.lines) {
    if (line.starts_with(ours)) {
      paths.push_back("include/tutti/" + line.substr(ours.size(), line.find('>') - ours.size()));
    } else if (line.starts_with(quoted)) {
      paths.push_back(from_root(file.path, line.substr(quoted.size(), line.rfind('"') - quoted.size())));
    }
  }
  return paths;
}

bool is_in_the_tree(const std::string& path) {
  return fs::is_regular_file(fs::path(TUTTI_SOURCE_DIR) / path);
}

std::vector<std::string> build_list(const std::string& name) {
  return read(fs::path(HOUSE_LISTS) / name, HOUSE_LISTS).lines;
}

}  // namespace tutti::house
