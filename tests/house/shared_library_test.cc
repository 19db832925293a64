// The shared library is a guest in its host's address space: it shows its own names and no others.
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

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
    // "0000000000001f90 T tutti::Status::Status(...)"
    const std::string name = line.substr(line.find(' ', line.find(' ') + 1) + 1);
    EXPECT_TRUE(is_ours(name)) << line;
  }
}

// A name that we take from libspdlog could as well come from the host's own, other, libspdlog.
TEST(SharedLibrary, CarriesItsOwnLogger) {
  for (const std::string& line : lines_of("nm -DC --undefined-only '" SHARED_LIBRARY "'")) {
    EXPECT_EQ(line.find(" spdlog::"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace tutti::house
