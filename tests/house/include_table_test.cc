// Tests that the #include lines obey the table of folders in docs/architecture.md ("may include").
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/house/source_tree.h"

namespace tutti::house {
namespace {

bool is_public(std::string_view path) { return path.starts_with("include/tutti/"); }

// Returns the area of a public header. Headers that are not in this list belong to `core`.
std::string_view floor_of(std::string_view public_header) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> floors = {
      {{"store.h", "rendezvous"},
       {"store_server.h", "rendezvous"},
       {"communicator.h", "collectives"},
       {"work.h", "collectives"},
       {"init.h", "bindings/cpp"},
       {"tutti.h", "bindings/cpp"},
       {"version.h", "bindings/cpp"},
       {"c.h", "bindings/c"},
       {"c_types.h", "bindings/c"}}};
  const std::string_view name = public_header.substr(public_header.rfind('/') + 1);
  const auto* const listed = std::ranges::find(floors, name, [](const auto& entry) { return entry.first; });
  return listed == floors.end() ? "core" : listed->second;
}

// Returns the area of a file. The area "transport" is the interface and the code that the
// transports share. An area such as "transport/tcp" is one transport.
std::string area_of(std::string_view path) {
  if (is_public(path)) return std::string(floor_of(path));
  const std::size_t slash = path.find('/');
  const std::string_view top = path.substr(0, slash);
  const bool has_parts = top == "transport" || top == "bindings";
  const std::size_t second = path.find('/', slash + 1);
  const std::string_view part =
      second == path.npos ? std::string_view() : path.substr(slash + 1, second - slash - 1);
  const bool is_seam = part.empty() || part == "cuda" || part == "driver" || part == "meeting" ||
                       part == "mesh" || part == "offload" || part == "stream";
  return std::string(has_parts && !(top == "transport" && is_seam) ? path.substr(0, second) : top);
}

bool is_in_the_house(const std::string& area) {
  return area == "core" || area.starts_with("transport") || area == "control" || area == "rendezvous" ||
         area == "collectives";
}

// Returns whether the `tutti` command may include this internal header. Besides `core`, the command may use
// the code whose decisions and records it explains: the code that reads the launcher's variables, the code
// that chooses transports and algorithms, and the code that keeps records. Its launcher and agents meet as
// ranks do. So the command may use the guarded connections and the event loops. For everything else, it uses
// the public headers.
bool shows_the_insides(const std::string& header) {
  constexpr std::array<std::string_view, 14> rooms = {"core/",
                                                      "rendezvous/launch/",
                                                      "transport/meeting/",
                                                      "transport/mpi/",
                                                      "transport/driver/descriptor_handler.h",
                                                      "transport/driver/event_loop.h",
                                                      "transport/driver/poller.h",
                                                      "transport/driver/timers.h",
                                                      "collectives/schedule/",
                                                      "collectives/record/",
                                                      "bindings/cpp/offloads.h",
                                                      "bindings/cpp/transports.h",
                                                      "collectives/run/board.h",
                                                      "collectives/group/world.h"};
  return !header.starts_with("collectives/schedule/algorithms/") &&
         std::ranges::any_of(rooms, [&](std::string_view room) { return header.starts_with(room); });
}

bool may_include(const std::string& from, const std::string& header) {
  const std::string to = area_of(header);
  if (from == "tests" || from == "bench") return true;
  if (from == "examples") {
    return header == "include/tutti/tutti.h" || header == "include/tutti/c.h" || to == "examples";
  }
  if (from == to) return true;
  if (from == "core") return false;
  if (from.starts_with("transport/")) return to == "core" || to == "transport";
  if (from == "transport") return to == "core";
  if (from == "control") return to == "core" || to == "transport";
  if (from == "rendezvous") return to == "core" || to == "transport";
  if (from == "collectives") return to == "core" || to == "transport" || to == "control";
  if (from == "bindings/cpp") return is_in_the_house(to) || is_public(header);
  if (from == "tools") return is_public(header) || shows_the_insides(header);
  if (from.starts_with("bindings")) return is_public(header);
  return false;
}

TEST(IncludeTable, IsKept) {
  ASSERT_GT(source_tree().size(), 10u);
  for (const SourceFile& file : source_tree()) {
    for (const std::string& header : includes_of(file)) {
      EXPECT_TRUE(may_include(area_of(file.path), header)) << file.path << " must not include " << header;
    }
  }
}

// Tests the rules above with includes that must be allowed, and with includes that must be
// rejected.
TEST(IncludeTable, KnowsRightFromWrong) {
  EXPECT_TRUE(may_include(area_of("transport/tcp/transport.cc"), "transport/channel.h"));
  EXPECT_TRUE(may_include(area_of("bindings/cpp/init.cc"), "transport/tcp/factory.h"));
  EXPECT_TRUE(may_include(area_of("rendezvous/store/file/session.cc"), "rendezvous/store/tcp/client.h"));
  EXPECT_TRUE(may_include(area_of("tools/main.cc"), "include/tutti/status.h"));
  EXPECT_TRUE(may_include(area_of("tools/main.cc"), "transport/meeting/connection.h"));
  EXPECT_FALSE(may_include(area_of("core/log.cc"), "transport/channel.h"));
  EXPECT_FALSE(may_include(area_of("transport/mesh/mesh.cc"), "transport/tcp/factory.h"));
  EXPECT_FALSE(may_include(area_of("transport/tcp/transport.cc"), "transport/inproc/factory.h"));
  EXPECT_FALSE(may_include(area_of("transport/tcp/transport.cc"), "include/tutti/store.h"));
  EXPECT_FALSE(may_include(area_of("rendezvous/meeting/bootstrap.cc"), "transport/tcp/factory.h"));
  EXPECT_FALSE(may_include(area_of("collectives/executor.cc"), "transport/tcp/factory.h"));
  EXPECT_FALSE(may_include(area_of("collectives/executor.cc"), "include/tutti/store.h"));
  EXPECT_FALSE(may_include(area_of("tools/main.cc"), "transport/tcp/factory.h"));
  EXPECT_FALSE(may_include(area_of("tools/main.cc"), "transport/driver/driver.h"));
  EXPECT_FALSE(may_include(area_of("tools/main.cc"), "transport/mesh/mesh.h"));
  EXPECT_FALSE(may_include(area_of("tools/main.cc"), "rendezvous/store/tcp/store_client.h"));
  EXPECT_FALSE(may_include(area_of("examples/01_hello.cc"), "include/tutti/status.h"));
}

// Installed headers must compile without the headers that are not installed.
TEST(IncludeTable, PublicHeadersIncludeOnlyPublicHeaders) {
  for (const SourceFile& file : source_tree()) {
    if (!is_public(file.path)) continue;
    for (const std::string& header : includes_of(file)) {
      EXPECT_TRUE(is_public(header)) << file.path << " is public, " << header << " is not";
    }
  }
}

// Only public headers export symbols. The shared library hides all other symbols, so that no program can
// depend on them.
TEST(IncludeTable, OnlyPublicHeadersExport) {
  int exporting = 0;
  for (const SourceFile& file : source_tree()) {
    if (!file.path.ends_with(".h") || area_of(file.path) == "tests") continue;
    const bool exports = std::ranges::any_of(file.lines, [](const std::string& line) {
      return line.find("TUTTI_API") != line.npos && !line.starts_with("#");
    });
    exporting += exports ? 1 : 0;
    EXPECT_TRUE(!exports || is_public(file.path)) << file.path << " exports, but is not public";
  }
  EXPECT_GT(exporting, 5);
}

// Every include must name a file of the tree, so that a reader can follow it without a build. The only
// exception is protoc's output, which exists only in a build.
TEST(IncludeTable, EveryIncludeNamesAFileOfTheTree) {
  for (const SourceFile& file : source_tree()) {
    for (const std::string& header : includes_of(file)) {
      EXPECT_TRUE(is_in_the_tree(header)) << file.path << " includes " << header;
    }
  }
}

// tutti is built without CUDA and NCCL. Only tests that compare tutti's declarations with the headers of CUDA
// and NCCL may include these headers. Where the headers are missing, these tests still compile.
TEST(IncludeTable, NoHeaderOfCudaOrNcclIsNeeded) {
  for (const SourceFile& file : source_tree()) {
    const bool compares = file.path == "tests/unit/transport/cuda_header_test.cc" ||
                          file.path.starts_with("tests/unit/transport/nccl/");
    if (compares) continue;
    for (const std::string& line : file.lines) {
      const bool foreign = line.starts_with("#include <") &&
                           (line.find("cuda") != line.npos || line.find("nccl") != line.npos);
      EXPECT_FALSE(foreign) << file.path << ": " << line;
    }
  }
}

// tutti is built without MPI. Only benchmarks and the tests that compare tutti's declarations with an mpi.h
// may include such a header.
TEST(IncludeTable, NoHeaderOfMpiIsNeeded) {
  for (const SourceFile& file : source_tree()) {
    if (file.path.starts_with("tests/unit/transport/mpi/") || file.path.starts_with("bench/")) continue;
    for (const std::string& line : file.lines)
      EXPECT_FALSE(line.starts_with("#include <mpi")) << file.path << ": " << line;
  }
}

// Returns whether the source with the same folder and name as `header` includes `header` first.
bool is_included_first_by_its_source(const std::string& header) {
  const std::string source = header.substr(0, header.size() - 1) + "cc";
  for (const SourceFile& file : source_tree()) {
    if (file.path != source) continue;
    const auto first = std::ranges::find_if(
        file.lines, [](const std::string& line) { return line.starts_with("#include"); });
    return first != file.lines.end() && *first == "#include \"" + header + "\"";
  }
  return false;
}

TEST(Headers, EachOneIsCompiledAlone) {
  const std::vector<std::string> alone = build_list("compiled_headers.txt");
  int headers = 0;
  for (const SourceFile& file : source_tree()) {
    const bool needs_more = file.path.starts_with("bindings/python/") ||
                            file.path.starts_with("bindings/torch/") ||
                            file.path.starts_with("bench/micro/") || file.path.starts_with("tests/torch/");
    if (!file.path.ends_with(".h") || needs_more) continue;
    ++headers;
    EXPECT_TRUE(std::ranges::count(alone, file.path) == 1 || is_included_first_by_its_source(file.path))
        << file.path << " has not been compiled alone: its source must include it first, or the build is old";
  }
  EXPECT_GT(headers, 100);
}

}  // namespace
}  // namespace tutti::house
