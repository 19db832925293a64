#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/house/source_tree.h"

// These tests find names that would clash in a unity build, which compiles several files of a layer as one.
namespace tutti::house {
namespace {

// The files of algorithms use the same names, so collectives/CMakeLists.txt keeps them out of unity builds.
constexpr std::string_view algorithms = "collectives/schedule/algorithms/";

// Returns the folder whose files a unity build may join with this file, or an empty text if there is none.
std::string layer_of(const std::string& path) {
  if (!path.ends_with(".cc") || path.starts_with(algorithms)) return {};
  const std::string folder = path.substr(0, path.find('/'));
  if (folder == "bindings") return path.substr(0, path.find('/', folder.size() + 1));
  const bool is_layer = folder == "core" || folder == "transport" || folder == "control" ||
                        folder == "rendezvous" || folder == "collectives" || folder == "tools";
  return is_layer ? folder : std::string();
}

// Returns the name of the constant or type that a line without indentation declares.
std::optional<std::string> named_by(const std::string& line) {
  static const std::regex constant(R"(^constexpr [^(={]*\b(\w+)(\(\d[^,]*\);|\{| =|\[).*)");
  static const std::regex type(R"(^(?:class|struct|enum|enum class) (\w+) .*\{.*)");
  std::smatch parts;
  if (std::regex_match(line, parts, constant) || std::regex_match(line, parts, type)) return parts[1];
  return std::nullopt;
}

TEST(Unity, NamesAreFound) {
  EXPECT_EQ(named_by("constexpr std::chrono::seconds limit{2};"), "limit");
  EXPECT_EQ(named_by("constexpr std::chrono::seconds limit(2);"), "limit");
  EXPECT_EQ(named_by("constexpr int most = 16;"), "most");
  EXPECT_EQ(named_by("constexpr Row table[] = {"), "table");
  EXPECT_EQ(named_by("class Reader : public Visitor {"), "Reader");
  EXPECT_EQ(named_by("  constexpr int inside = 16;"), std::nullopt);
  EXPECT_EQ(named_by("constexpr int twice(int number) { return 2 * number; }"), std::nullopt);
}

// The Python package (pyproject.toml) and the presets asan and tsan are unity builds. They join
// neighbouring files. So a clash may stay hidden until a new file changes which files are joined.
TEST(Unity, ConstantsAndTypesOfALayerHaveNamesOfTheirOwn) {
  std::map<std::string, std::string> known;  // maps layer, namespace and name to the file
  for (const SourceFile& file : source_tree()) {
    const std::string layer = layer_of(file.path);
    if (layer.empty()) continue;
    std::string outer;
    bool unnamed = false;
    for (const std::string& line : file.lines) {
      if (line.starts_with("namespace tutti")) outer = line;
      if (line == "namespace {") unnamed = true;
      if (line == "}  // namespace") unnamed = false;
      const std::optional<std::string> name = unnamed ? named_by(line) : std::nullopt;
      if (!name) continue;
      const auto [at, is_new] = known.emplace(layer + " " + outer + " " + *name, file.path);
      EXPECT_TRUE(is_new || at->second == file.path)
          << file.path << " and " << at->second << " both name something " << *name;
    }
  }
  EXPECT_GT(known.size(), 100U);
}

}  // namespace
}  // namespace tutti::house
