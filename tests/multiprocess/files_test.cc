// Tests the files that ranks and the launcher write. A file may already exist, or its size may be
// limited.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string tutti_program = TUTTI_BIN_DIR "/tutti";
const std::string rank_program = TUTTI_BIN_DIR "/tests/debug_rank";

std::string content_of(const std::string& name) {
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs two ranks that make different calls, so that they write dumps. Returns their output.
std::string words_of_failing_ranks(const Process::Environment& environment) {
  Process job({tutti_program, "run", "-n", "2", rank_program, "mismatch"}, environment);
  EXPECT_EQ(job.wait(), 0) << job.report();
  return job.out() + job.err();
}

TEST(PlantedFiles, NoLinkIsFollowedAndNothingWaitedFor) {
  const ScratchFolder folder;
  std::ofstream(folder / "victim") << "weeks of work";
  for (const char* name : {"dump.0.json", "trace.0.json"}) {
    std::filesystem::create_symlink(folder / "victim", folder / name);
  }
  for (const char* name : {"dump.1.json", "trace.1.json"}) {
    ASSERT_EQ(mkfifo((folder / name).c_str(), 0600), 0);
  }
  const std::string words =
      words_of_failing_ranks({{"TUTTI_DUMP", folder / "dump.json"}, {"TUTTI_TRACE", folder / "trace.json"}});
  for (const char* name : {"dump.0.json", "trace.0.json"}) {
    EXPECT_THAT(words, HasSubstr(folder / name + ": it is a symbolic link"));
  }
  EXPECT_EQ(content_of(folder / "victim"), "weeks of work");
}

// This attack needs a kernel that lets users make hard links to files that they cannot write (see
// fs.protected_hardlinks).
TEST(PlantedFiles, NoFileWithOtherNamesIsOverwritten) {
  const ScratchFolder folder;
  std::ofstream(folder / "victim") << "weeks of work";
  for (const char* name : {"dump.0.json", "trace.0.json", "stdout"}) {
    std::filesystem::create_hard_link(folder / "victim", folder / name);
  }
  const std::string words =
      words_of_failing_ranks({{"TUTTI_DUMP", folder / "dump.json"}, {"TUTTI_TRACE", folder / "trace.json"}});
  for (const char* name : {"dump.0.json", "trace.0.json"}) {
    EXPECT_THAT(words, HasSubstr(folder / name + ": it is a hard link"));
  }
  std::filesystem::create_directories(folder / "out/1/rank.0");
  std::filesystem::rename(folder / "stdout", folder / "out/1/rank.0/stdout");
  Process job({tutti_program, "run", "-n", "1", "--output-filename", folder / "out", "echo", "words"});
  EXPECT_EQ(job.wait(), 1) << job.report();
  EXPECT_THAT(job.err(), HasSubstr("out/1/rank.0/stdout: it is a hard link"));
  EXPECT_EQ(content_of(folder / "victim"), "weeks of work");
}

TEST(PlantedFiles, TheLaunchersLogsFollowNoLink) {
  const ScratchFolder folder;
  std::ofstream(folder / "victim") << "weeks of work";
  std::filesystem::create_directories(folder / "out/1/rank.0");
  std::filesystem::create_symlink(folder / "victim", folder / "out/1/rank.0/stdout");
  Process job({tutti_program, "run", "-n", "1", "--output-filename", folder / "out", "echo", "words"});
  EXPECT_EQ(job.wait(), 1) << job.report();
  EXPECT_THAT(job.err(), HasSubstr("out/1/rank.0/stdout: it is a symbolic link"));
  EXPECT_EQ(content_of(folder / "victim"), "weeks of work");
}

TEST(PlantedFiles, TheLaunchersFoldersAreNoLinks) {
  for (const char* planted : {"out/1", "out/1/rank.0"}) {
    const ScratchFolder folder;
    std::filesystem::create_directories(folder / "victim/rank.0");
    for (const char* name : {"victim/stdout", "victim/rank.0/stdout"})
      std::ofstream(folder / name) << "weeks of work";
    std::filesystem::create_directories(std::filesystem::path(folder / planted).parent_path());
    std::filesystem::create_directory_symlink(folder / "victim", folder / planted);
    Process job({tutti_program, "run", "-n", "1", "--output-filename", folder / "out", "echo", "words"});
    EXPECT_EQ(job.wait(), 1) << job.report();
    EXPECT_THAT(job.err(), HasSubstr(folder / planted + ": it is a symbolic link"));
    for (const char* name : {"victim/stdout", "victim/rank.0/stdout"})
      EXPECT_EQ(content_of(folder / name), "weeks of work");
  }
}

TEST(PlantedFiles, AJobsNameStaysInTheFolder) {
  for (const std::string job : {"..", "../..", "/tmp"}) {
    const ScratchFolder folder;
    std::filesystem::create_directories(folder / "a/b");
    Process rank({rank_program, "mismatch"}, {{"TUTTI_RANK", "0"},
                                              {"TUTTI_WORLD_SIZE", "1"},
                                              {"TUTTI_JOB_ID", job},
                                              {"TUTTI_TRACE", folder / "a/b/%j/trace-%r.json"}});
    ASSERT_TRUE(rank.wait().has_value()) << rank.report();
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path())) {
      EXPECT_TRUE(file.is_directory()) << file.path();
    }
  }
}

// Runs `script` under `ulimit -f 0`. Returns its output and status. The output goes through a pipe,
// since the limit does not apply to pipes.
std::string under_no_file_size(const std::string& script, const Process::Environment& environment) {
  Process limited({"sh", "-c", "((ulimit -f 0; " + script + ") 2>&1; echo \"status $?\") | cat"},
                  environment);
  EXPECT_EQ(limited.wait(), 0) << limited.report();
  return limited.out();
}

class FileSizeLimit : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the thread sanitizer writes a file of its own at the start";
#endif
  }
};

TEST_F(FileSizeLimit, IsAnErrorAndNoSignal) {
  for (const char* transports : {"shm,tcp", "tcp", "auto"}) {
    const ScratchFolder folder;
    const std::string words =
        under_no_file_size("exec " + tutti_program + " run -n 2 " + rank_program + " mismatch",
                           {{"TUTTI_TRANSPORTS", transports},
                            {"TUTTI_DUMP", folder / "dump.json"},
                            {"TUTTI_TRACE", folder / "trace.json"},
                            {"TUTTI_INIT_TIMEOUT", "20s"}});
    const std::string too_large = "File too large for this process (RLIMIT_FSIZE, ulimit -f)";
    EXPECT_THAT(words, AllOf(HasSubstr(too_large), HasSubstr("status "))) << transports;
    EXPECT_THAT(words, AllOf(Not(HasSubstr("signal 25")), Not(HasSubstr("status 153")))) << transports;
    // Shared memory cannot be used here, since it needs files. The ranks meet without it unless the
    // user has requested shared memory.
    EXPECT_THAT(words,
                HasSubstr(std::string(transports) == "shm,tcp" ? "transport shm" : "failed: mismatch"));
  }
}

TEST_F(FileSizeLimit, LogsAndSessionsToo) {
  const ScratchFolder folder;
  const Process::Environment environment = {{"TUTTI_LOG_FILE", folder / "log"},
                                            {"TUTTI_LOG_LEVEL", "trace"},
                                            {"TUTTI_RANK", "0"},
                                            {"TUTTI_WORLD_SIZE", "2"},
                                            {"TUTTI_INIT_METHOD", "file://" + (folder / "session")}};
  const std::string words = under_no_file_size("exec " + rank_program + " mismatch", environment);
  EXPECT_THAT(words, HasSubstr("cannot write the session file " + (folder / "session") + ": File too large"));
  EXPECT_THAT(words, Not(HasSubstr("status 153")));
  const std::string out = under_no_file_size(
      "exec " + tutti_program + " run -n 1 --output-filename " + (folder / "out") + " echo words",
      {{"TUTTI_LOG_LEVEL", "trace"}});
  EXPECT_THAT(out, AllOf(HasSubstr("words"), HasSubstr("File too large"), Not(HasSubstr("status 153"))));
}

}  // namespace
}  // namespace tutti::test
