// Tests the shape of the library: no include cycles between units, at most 400 lines in a file, and
// at most 40 lines in a function.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/house/functions.h"
#include "tests/house/source_tree.h"

namespace tutti::house {
namespace {

bool is_of_the_library(std::string_view path) {
  static constexpr std::array<std::string_view, 3> others = {"tests/", "bench/", "examples/"};
  return std::ranges::none_of(others, [&](std::string_view folder) { return path.starts_with(folder); });
}

std::string without_extension(const std::string& path) { return path.substr(0, path.rfind('.')); }

// A header and its source are one unit, named by their path without the extension. `Units` maps each unit to
// the units that it includes.
using Units = std::map<std::string, std::set<std::string>>;

Units units_of(const std::vector<SourceFile>& files) {
  Units units;
  for (const SourceFile& file : files) {
    if (is_of_the_library(file.path)) units[without_extension(file.path)];
  }
  for (const SourceFile& file : files) {
    if (!is_of_the_library(file.path)) continue;
    const std::string unit = without_extension(file.path);
    for (const std::string& header : includes_of(file)) {
      const std::string other = without_extension(header);
      if (other != unit && units.contains(other)) units[unit].insert(other);
    }
  }
  return units;
}

// Returns all units that `start` includes, directly or through other units.
std::set<std::string> reached_from(const std::string& start, const Units& units) {
  std::set<std::string> reached;
  std::vector<std::string> next = {start};
  while (!next.empty()) {
    const std::string unit = next.back();
    next.pop_back();
    for (const std::string& other : units.at(unit)) {
      if (reached.insert(other).second) next.push_back(other);
    }
  }
  return reached;
}

// Returns each cycle as the set of its units, which all reach each other.
std::set<std::set<std::string>> circles_among(const Units& units) {
  Units reached;
  for (const auto& [unit, included] : units) reached[unit] = reached_from(unit, units);
  std::set<std::set<std::string>> circles;
  for (const auto& [unit, others] : reached) {
    if (!others.contains(unit)) continue;
    std::set<std::string> circle = {unit};
    for (const std::string& other : others) {
      if (reached.at(other).contains(unit)) circle.insert(other);
    }
    circles.insert(std::move(circle));
  }
  return circles;
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Cycles are forbidden, because a reader of one unit would have to read the whole cycle.
TEST(Circles, NoUnitsIncludeEachOther) {
  // These cycles are allowed. Each cycle is a class and the header of its private state. Several
  // source files of the class share that header.
  const std::set<std::set<std::string>> allowed = {
      {"transport/driver/driver", "transport/driver/state"},
      {"transport/mesh/mesh", "transport/mesh/state"},
  };
  const std::set<std::set<std::string>> found = circles_among(units_of(source_tree()));
  for (const std::set<std::string>& circle : found) {
    EXPECT_TRUE(allowed.contains(circle)) << "these include each other: " << joined(circle);
  }
  for (const std::set<std::string>& circle : allowed) {
    EXPECT_TRUE(found.contains(circle)) << "no circle any more: " << joined(circle);
  }
}

TEST(Circles, AreFound) {
  const std::vector<SourceFile> files = {{"core/a.h", {"#include \"core/b.h\""}},
                                         {"core/b.cc", {"#include \"core/b.h\"", "#include \"core/c.h\""}},
                                         {"core/b.h", {"#include <string>"}},
                                         {"core/c.h", {"#include \"core/a.h\"", "#include \"core/d.h\""}},
                                         {"core/d.h", {"#include \"core/e.h\""}},
                                         {"core/e.h", {"#include <tutti/e.h>"}},
                                         {"include/tutti/e.h", {"#pragma once"}}};
  const std::set<std::set<std::string>> expected = {{"core/a", "core/b", "core/c"}};
  EXPECT_EQ(circles_among(units_of(files)), expected);
}

constexpr std::size_t most_file_lines = 400;
constexpr std::size_t most_function_lines = 40;

TEST(Sizes, FilesAreShort) {
  for (const SourceFile& file : source_tree()) {
    if (!is_of_the_library(file.path)) continue;
    EXPECT_LE(file.lines.size(), most_file_lines) << file.path << " contains a second idea: give it a file";
  }
}

TEST(Sizes, FunctionsAreShort) {
  int functions = 0;
  for (const SourceFile& file : source_tree()) {
    if (!is_of_the_library(file.path)) continue;
    for (const Function& function : functions_of(file)) {
      ++functions;
      EXPECT_LE(function.lines(), most_function_lines)
          << file.path << ":" << function.first_line << ": " << function.head;
    }
  }
  EXPECT_GT(functions, 2000);
}

// Tests one definition of each kind, and text that only looks like a definition.
TEST(Sizes, FunctionsAreFound) {
  const SourceFile file = {"core/sample.cc",
                           {"namespace tutti {",                                     // 1
                            "namespace {",                                           // 2
                            "",                                                      // 3
                            "// Not this: int f() {",                                // 4
                            "constexpr Row table[] = {{\"}\", 1}, {\"a\", f(2)}};",  // 5
                            "enum class Kind { one, two };",                         // 6
                            "#define BODY {",                                        // 7
                            "",                                                      // 8
                            "template <class T = int>",                              // 9
                            "T longest(T a,",                                        // 10
                            "          T b) {",                                      // 11
                            "  const auto less = [](T x, T y) {",                    // 12
                            "    return x < y && '}' != '{' && 1'000;",              // 13
                            "  };",                                                  // 14
                            "  struct Local {",                                      // 15
                            "    int f() { return 0; }",                             // 16
                            "  };",                                                  // 17
                            "  return less(a, b) ? b : a;",                          // 18
                            "}",                                                     // 19
                            "",                                                      // 20
                            "class LOCKED(\"a\") Holder : public Base {",            // 21
                            " public:",                                              // 22
                            "  explicit Holder(int a)",                              // 23
                            "      : a_(a), b_{a, 2} {",                             // 24
                            "    open();",                                           // 25
                            "  }",                                                   // 26
                            "  bool operator==(const Holder& other) const {",        // 27
                            "    return a_ == other.a_;",                            // 28
                            "  }",                                                   // 29
                            "  void (*done)() = [] {};",                             // 30
                            "",                                                      // 31
                            " private:",                                             // 32
                            "  int a_{3};",                                          // 33
                            "};",                                                    // 34
                            "",                                                      // 35
                            "}  // namespace",                                       // 36
                            "}  // namespace tutti"}};                               // 37
  std::vector<std::pair<std::size_t, std::size_t>> lines;
  for (const Function& function : functions_of(file))
    lines.emplace_back(function.first_line, function.last_line);
  const std::vector<std::pair<std::size_t, std::size_t>> expected = {{9, 19}, {23, 26}, {27, 29}};
  EXPECT_EQ(lines, expected);
}

}  // namespace
}  // namespace tutti::house
