#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tutti/config.h>

#include "tests/house/source_tree.h"

namespace tutti::house {
namespace {

// Returns the text between double quotes on one line.
std::string quoted_text(std::string_view line) {
  std::string text;
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      inside = !inside;
      text += ' ';
    } else if (inside) {
      text += line[i];
    }
  }
  return text;
}

// Returns every word TUTTI_SOMETHING in `text`, except the bare prefix and patterns such as "TUTTI_BENCH_*".
std::vector<std::string> variables_in(std::string_view text) {
  constexpr std::string_view prefix = "TUTTI_";
  const auto is_part = [](char c) {
    return std::isupper(static_cast<unsigned char>(c)) || std::isdigit(static_cast<unsigned char>(c)) ||
           c == '_';
  };
  std::vector<std::string> names;
  for (std::size_t at = text.find(prefix); at != text.npos; at = text.find(prefix, at + 1)) {
    if (at > 0 && is_part(text[at - 1])) continue;
    std::size_t end = at;
    while (end < text.size() && is_part(text[end])) ++end;
    if (end > at + prefix.size() && text[end - 1] != '_') names.emplace_back(text.substr(at, end - at));
  }
  return names;
}

TEST(Sources, NothingIsLeftForLater) {
  // These words are written in two parts, so that this file itself passes.
  const std::vector<std::string> marks = {
      "TO"
      "DO",
      "FIX"
      "ME",
      "XX"
      "X:"};
  for (const SourceFile& file : source_tree()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& mark : marks) {
        EXPECT_EQ(file.lines[i].find(mark), std::string::npos)
            << file.path << ":" << i + 1 << ": " << file.lines[i];
      }
    }
  }
}

// The table (`Config::variables`) must have every variable whose name is in a string literal. So
// each variable has documentation and a default, and misspelt names are found. Source files of
// tests are not checked, since they misspell names on purpose.
TEST(Sources, EveryVariableIsInTheTable) {
  std::vector<std::string_view> known;
  for (const Config::Variable& variable : Config::variables()) known.push_back(variable.name);
  for (const SourceFile& file : source_tree()) {
    if (file.path.starts_with("tests/")) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& name : variables_in(quoted_text(file.lines[i]))) {
        EXPECT_NE(std::ranges::find(known, name), known.end())
            << file.path << ":" << i + 1 << ": " << name << " is not in core/config_table.cc";
      }
    }
  }
}

// Returns the name that a using-declaration or an alias of a namespace makes known.
std::optional<std::string> shortened_by(const std::string& line) {
  static const std::regex declaration(R"(^\s*(?:using [\w:]+::(\w+)|namespace (\w+) = [\w:]+);.*)");
  if (line.find("using ") == line.npos && line.find("namespace ") == line.npos) return std::nullopt;
  std::smatch parts;
  if (!std::regex_match(line, parts, declaration)) return std::nullopt;
  return parts[1].matched ? parts[1] : parts[2];
}

TEST(Sources, ShortenedNamesAreFound) {
  EXPECT_EQ(shortened_by("using std::chrono::milliseconds;"), "milliseconds");
  EXPECT_EQ(shortened_by("  namespace asio_ip = asio::ip;"), "asio_ip");
  EXPECT_EQ(shortened_by("using Words = std::vector<std::string>;"), std::nullopt);
}

// clang-tidy checks several sources as one file (tests/house/tidy.py), so the use of a name in one source
// might hide that another source declares it without use. This test looks at each source by itself.
TEST(Sources, ShortenedNamesAreUsed) {
  for (const SourceFile& file : source_tree()) {
    if (!file.path.ends_with(".cc")) continue;
    for (const std::string& line : file.lines) {
      const std::optional<std::string> name = shortened_by(line);
      if (!name) continue;
      const std::regex word("\\b" + *name + "\\b");
      const auto uses = std::ranges::count_if(
          file.lines, [&](const std::string& other) { return std::regex_search(other, word); });
      EXPECT_GT(uses, 1) << file.path << ": " << line;
    }
  }
}

// docs/security.md states each promise in a row of a table, with the tests that check it.
TEST(Sources, EveryPromiseNamesATestThatExists) {
  std::string all;
  for (const SourceFile& file : source_tree()) {
    if (!file.path.starts_with("tests/")) continue;
    for (const std::string& line : file.lines) all += line;
  }
  std::ifstream document(std::string(TUTTI_SOURCE_DIR) + "/docs/security.md");
  int promises = 0;
  bool in_table = false;
  for (std::string line; std::getline(document, line);) {
    in_table = line.starts_with("| promise |") || (in_table && line.starts_with("|"));
    if (!in_table || line.starts_with("| promise |") || line.starts_with("|---")) continue;
    ++promises;
    const std::string tests = line.substr(line.rfind(" | "));
    EXPECT_NE(tests.find('`'), tests.npos) << "no test checks: " << line;
    for (std::size_t at = tests.find('`'); at != tests.npos; at = tests.find('`', at + 1)) {
      const std::size_t end = tests.find('`', at + 1);
      std::string name = tests.substr(at + 1, end - at - 1);
      at = end;
      if (name.find('/') != name.npos) {
        EXPECT_TRUE(std::filesystem::exists(TUTTI_SOURCE_DIR "/" + name)) << line;
        continue;
      }
      const std::size_t dot = name.find('.');
      ASSERT_NE(dot, name.npos) << line;
      name.replace(dot, 1, ", ");
      EXPECT_NE(all.find("(" + name + ")"), all.npos) << "there is no test " << name << " for: " << line;
    }
  }
  EXPECT_GT(promises, 20);
}

}  // namespace
}  // namespace tutti::house
