#include "core/file_pattern.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

const FileNameParts parts{.rank = 3, .host = "b", .pid = 4711, .job = "../j"};

std::string expanded(std::string_view pattern) { return expand_file_pattern(pattern, "tutti.json", parts); }

TEST(FilePattern, ReplacesWhatItKnows) {
  EXPECT_EQ(expanded("/x/%j-%h-%r-%p.json"), "/x/_.._j-b-3-4711.json");
  EXPECT_EQ(expanded("%r%%r%q%"), "3%r%q%");
}

TEST(FilePattern, NoNameLeadsOutOfTheFolder) {
  const auto with_job = [](const std::string& job) {
    return expand_file_pattern("%j/x/.%j.%r", "", {.host = "h", .job = job});
  };
  EXPECT_EQ(with_job(".."), "_../x/._...0");
  EXPECT_EQ(with_job("."), "_./x/._..0");
  EXPECT_EQ(with_job(""), "_/x/._.0");
  EXPECT_EQ(with_job("/"), "_/x/._.0");
  EXPECT_EQ(with_job("../../etc"), "_.._.._etc/x/._.._.._etc.0");
  EXPECT_EQ(with_job(std::string("\x1b[2J\0\n", 6)), "_[2J__/x/._[2J__.0");
  EXPECT_EQ(expand_file_pattern("%h/%r", "", {.host = "..", .job = ""}), "_../0");
}

TEST(FilePattern, RanksHaveFilesOfTheirOwn) {
  EXPECT_EQ(expanded("trace.json"), "trace.3.json");
  EXPECT_EQ(expanded("/a.b/trace"), "/a.b/trace.3");
  EXPECT_EQ(expanded("/a/.trace"), "/a/.trace.3");
  EXPECT_EQ(expanded("trace-%p"), "trace-4711");
}

TEST(FilePattern, AFolderStandsForAFileInIt) {
  EXPECT_EQ(expanded("/"), "/tutti.3.json");
  EXPECT_EQ(expanded("/tmp"), "/tmp/tutti.3.json");
  EXPECT_EQ(expanded("/no/such/folder/"), "/no/such/folder/tutti.3.json");
}

}  // namespace
}  // namespace tutti
