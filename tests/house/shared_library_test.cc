// Tests that the shared library exports its own names and no other names. Any other name could clash with a
// name of the program that loads the library.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/house/source_tree.h"

namespace tutti::house {
namespace {

std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return lines;
  std::string line;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    lines.push_back(line);
    line.clear();
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return lines;
}

bool is_ours(std::string_view name) {
  constexpr std::array prefixes = {
      "tutti::", "typeinfo for tutti::", "typeinfo name for tutti::", "vtable for tutti::", "tutti_"};
  for (const char* prefix : prefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

TEST(SharedLibrary, ExportsOnlyOurNames) {
  const std::vector<std::string> lines = lines_of("nm -DC --defined-only '" SHARED_LIBRARY "'");
  ASSERT_GT(lines.size(), 5u) << "nm lists nothing";
  for (const std::string& line : lines) {
    // A line looks like this: "0000000000001f90 T tutti::Status::Status(...)".
    const std::string name = line.substr(line.find(' ', line.find(' ') + 1) + 1);
    EXPECT_TRUE(is_ours(name)) << line;
  }
}

// Returns the functions that the C interface's headers declare.
std::vector<std::string> promised_functions() {
  std::vector<std::string> names;
  for (const SourceFile& file : source_tree()) {
    if (file.path != "include/tutti/c.h" && file.path != "include/tutti/c_types.h") continue;
    for (const std::string& line : file.lines) {
      if (!line.starts_with("TUTTI_C_API")) continue;
      const std::size_t end = line.find('(');
      const std::size_t begin = line.rfind("tutti_", end);
      EXPECT_NE(end, line.npos) << line;
      names.push_back(line.substr(begin, end - begin));
    }
  }
  std::ranges::sort(names);
  return names;
}

// The library must export every function of the C headers, and no other C function. `nm` runs
// without -C, since C names are not mangled.
TEST(SharedLibrary, ExportsTheCInterface) {
  std::vector<std::string> exported;
  for (const std::string& line : lines_of("nm -D --defined-only '" SHARED_LIBRARY "'")) {
    const std::string name = line.substr(line.rfind(' ') + 1);
    if (name.starts_with("tutti_")) exported.push_back(name.substr(0, name.find('@')));
  }
  std::ranges::sort(exported);
  EXPECT_GT(exported.size(), 50u);
  EXPECT_EQ(exported, promised_functions());
}

// The library must not export the implementation of the C interface.
TEST(SharedLibrary, HidesWhatTheCInterfaceIsMadeOf) {
  for (const std::string& line : lines_of("nm -DC --defined-only '" SHARED_LIBRARY "'")) {
    EXPECT_EQ(line.find("tutti::c::"), std::string::npos) << line;
  }
}

// The library must have no undefined symbols of spdlog. The program's own libspdlog could resolve
// such symbols, and may be another version.
TEST(SharedLibrary, CarriesItsOwnLogger) {
  for (const std::string& line : lines_of("nm -DC --undefined-only '" SHARED_LIBRARY "'")) {
    EXPECT_EQ(line.find(" spdlog::"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace tutti::house
