// Tests that no command and no rank writes a secret to its output or to a file.
#include <filesystem>

#include <gmock/gmock.h>
#include <signal.h>

#include "tests/multiprocess/launcher_process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::launcher_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string secret = "a-token-that-nobody-may-see-4c0b7e";
const std::string rank_program = TUTTI_BIN_DIR "/tests/debug_rank";

// Adds variables that contain the secret: TUTTI_TOKEN, variables of other launchers, and a misspelt
// name. Also adds a variable that makes the log as detailed as possible.
Words secretive(Words more = {}) {
  for (const char* name : {"TUTTI_TOKEN", "PMI_SHARED_SECRET", "SLURM_JWT", "RANK_KEY", "TUTTI_TOKN"}) {
    more.push_back(name + ("=" + secret));
  }
  more.push_back("TUTTI_LOG_LEVEL=trace");
  return more;
}

void expect_silent(const Ended& ended, const std::string& what) {
  EXPECT_THAT(ended.out, Not(HasSubstr(secret))) << what;
  EXPECT_THAT(ended.err, Not(HasSubstr(secret))) << what;
}

TEST(LauncherSecrets, CommandsThatShowAndChoose) {
  for (const Words& words : std::vector<Words>{{"info"},
                                               {"info", "--env"},
                                               {"info", "--env", "--markdown"},
                                               {"explain", "all_reduce", "--ranks", "4"},
                                               {"bench", "all_reduce", "-n", "2", "--max-bytes", "64"},
                                               {"debug"},
                                               {"debug", "--merge"},
                                               {"store", "--port", "0", "--bind", "nonsense"}}) {
    expect_silent(tutti(words, "", secretive()), words[0]);
  }
  const Ended info = tutti({"info"}, "", secretive());
  EXPECT_THAT(info.out, HasSubstr("TUTTI_TOKEN=(set)"));
  EXPECT_THAT(info.out, HasSubstr("PMI_SHARED_SECRET=(set)"));
}

TEST(LauncherSecrets, ErrorsAboutValues) {
  for (const std::string& place :
       {"TUTTI_INIT_METHOD=tcp://me:" + secret + "@localhost:1?rank=0", "TUTTI_STORE=" + secret + "@b:1",
        "TUTTI_INIT_METHOD=tcp://b:1?rank=0&world_size=2&token=" + secret,
        std::string("TUTTI_TOKEN_FILE=/no/such/file")}) {
    expect_silent(tutti({"info"}, "", secretive({place})), place);
    expect_silent(tutti({"run", "-n", "1", rank_program, "mismatch"}, "", secretive({place})), place);
  }
}

TEST(LauncherSecrets, RanksThatFailAndWhatTheyLeave) {
  test::ScratchFolder folder;
  const Words variables =
      secretive({"TUTTI_DUMP=" + folder / "dump.json", "TUTTI_TRACE=" + folder / "trace.json",
                 "TUTTI_LOG_FILE=" + folder / "log", "TUTTI_INIT_TIMEOUT=5s"});
  expect_silent(
      tutti({"run", "-n", "2", "--output-filename", folder / "out", rank_program, "mismatch"}, "", variables),
      "mismatch");
  expect_silent(tutti({"run", "-n", "2", "sh", "-c", "[ $RANK = 0 ] || exit 3; sleep 60"}, "", variables),
                "a rank that fails");
  expect_silent(tutti({"run", "-n", "2", "sh", "-c",
                       "[ $RANK = 0 ] || export TUTTI_TOKEN=another-token-of-some-length; exec " +
                           rank_program + " mismatch"},
                      "", variables),
                "tokens that differ");
  for (const char* name : {"dump.0.json", "trace.1.json", "log", "out/1/rank.0/stdout"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  }
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (file.is_regular_file()) {
      EXPECT_THAT(read_file(file.path()), Not(HasSubstr(secret))) << file.path();
    }
  }
}

TEST(LauncherSecrets, WhatRunningOnesAnswer) {
  Command store({"store", "--port", "0"}, "", secretive());
  Command ranks({"run", "-n", "2", rank_program, "late"}, "", secretive());
  ASSERT_TRUE(store.wait_for_output("serving at"));
  ASSERT_TRUE(ranks.wait_for_output("stuck", 2));
  expect_silent(tutti({"debug"}, "", secretive()), "debug");
  expect_silent(tutti({"debug", "--merge"}, "", secretive()), "debug --merge");
  for (const pid_t pid : ranks.marked()) {
    expect_silent(tutti({"debug", std::to_string(pid)}, "", secretive()), "debug PID");
  }
  for (Command* command : {&store, &ranks}) {
    command->signal(SIGTERM);
    expect_silent(command->wait(), "ended");
  }
}

}  // namespace
}  // namespace tutti::launcher_test
