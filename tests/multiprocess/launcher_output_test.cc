#include <cstdio>
#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/multiprocess/launcher_process.h"
#include "tests/support/scratch_folder.h"

// Tests to which streams and files the launcher writes the output of its ranks.
namespace tutti::launcher_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LauncherOutput, Tags) {
  const Ended result = run_shell({"-n", "2", "--tag-output"}, "echo out; echo err >&2");
  EXPECT_EQ(count(result.out, "[1,0]<stdout>:out\n"), 1);
  EXPECT_EQ(count(result.out, "[1,1]<stdout>:out\n"), 1);
  EXPECT_EQ(count(result.err, "[1,0]<stderr>:err\n"), 1);
  EXPECT_EQ(count(result.err, "[1,1]<stderr>:err\n"), 1);
}

TEST(LauncherOutput, Timestamps) {
  const std::string time = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6} ";
  EXPECT_THAT(run_shell({"-n", "1", "--timestamp-output"}, "echo hi").out,
              testing::MatchesRegex(time + "hi\n"));
  const std::string tag = "\\[1,0\\]<stdout>:";
  EXPECT_THAT(run_shell({"-n", "1", "--timestamp-output", "--tag-output"}, "echo a; echo b").out,
              testing::MatchesRegex(time + tag + "a\n" + time + tag + "b\n"));
}

TEST(LauncherOutput, StreamsStayApartUnlessMerged) {
  const std::string script = "echo one; echo two >&2; echo three";
  const Ended apart = run_shell({"-n", "1"}, script);
  EXPECT_EQ(apart.out, "one\nthree\n");
  EXPECT_EQ(apart.err, "two\n");
  const Ended merged = run_shell({"-n", "1", "--merge-stderr-to-stdout"}, script);
  EXPECT_EQ(merged.out, "one\ntwo\nthree\n");
  EXPECT_EQ(merged.err, "");
}

TEST(LauncherOutput, LogFiles) {
  test::ScratchFolder folder;
  const Ended result = run_shell({"-n", "12", "--output-filename", folder / "a/logs", "--tag-output"},
                                 "echo $RANK; echo e$RANK >&2");
  EXPECT_EQ(result.status, 0) << result.err;
  for (const std::string rank : {"0", "5", "11"}) {
    EXPECT_EQ(read_file(folder / ("a/logs/1/rank." + rank + "/stdout")), rank + "\n");
    EXPECT_EQ(read_file(folder / ("a/logs/1/rank." + rank + "/stderr")), "e" + rank + "\n");
    EXPECT_THAT(result.out, HasSubstr("[1," + rank + "]<stdout>:" + rank + "\n"));
  }
}

TEST(LauncherOutput, LogFilesOnly) {
  test::ScratchFolder folder;
  const Ended result =
      run_shell({"-n", "2", "--output-filename", folder / "logs:nocopy"}, "echo out; echo err >&2");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(read_file(folder / "logs/1/rank.1/stdout"), "out\n");
  EXPECT_EQ(read_file(folder / "logs/1/rank.1/stderr"), "err\n");
}

TEST(LauncherOutput, LogFilesMerged) {
  test::ScratchFolder folder;
  run_shell({"-n", "1", "--output-filename", folder / "logs:nocopy", "--merge-stderr-to-stdout"},
            "echo out; echo err >&2");
  EXPECT_EQ(read_file(folder / "logs/1/rank.0/stdout"), "out\nerr\n");
  EXPECT_NE(access((folder / "logs/1/rank.0/stderr").c_str(), F_OK), 0);
}

TEST(LauncherOutput, FailureIsNamedEvenWithoutCopy) {
  test::ScratchFolder folder;
  const Ended result = run_shell({"-n", "2", "--output-filename", folder / "logs:nocopy"},
                                 "[ $RANK = 0 ] || { echo why >&2; exit 4; }");
  EXPECT_EQ(result.status, 4);
  EXPECT_THAT(result.err, HasSubstr("  rank 1| why\n"));
}

TEST(LauncherOutput, LogFolderThatCannotBe) {
  test::ScratchFolder folder;
  const Ended result = run_shell({"-n", "1", "--output-filename", "/proc/no"}, "echo never");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("/proc/no/1/rank.0"));
}

TEST(LauncherOutput, InputGoesToRankZero) {
  const Ended result = run_shell({"-n", "3", "--tag-output"}, "cat; echo end", "one\ntwo\n");
  EXPECT_EQ(count(result.out, "[1,0]<stdout>:one\n[1,0]<stdout>:two\n"), 1) << result.out;
  EXPECT_EQ(count(result.out, "one"), 1);
  EXPECT_EQ(count(result.out, ":end\n"), 3);
}

TEST(LauncherOutput, MuchOfItIsComplete) {
  const Ended result =
      run_shell({"-n", "8", "--tag-output"}, "seq -f \"line %.0f of $RANK\" 10000; seq 10000 >&2");
  EXPECT_EQ(result.status, 0);
  std::map<int, int> next;
  for (const std::string& line : lines_of(result.out)) {
    int tag = -1;
    int number = -1;
    int rank = -1;
    ASSERT_EQ(std::sscanf(line.c_str(), "[1,%d]<stdout>:line %d of %d", &tag, &number, &rank), 3) << line;
    ASSERT_EQ(tag, rank) << line;
    ASSERT_EQ(number, ++next[rank]) << line;
  }
  EXPECT_EQ(next.size(), 8u);
  for (const auto& [rank, last] : next) EXPECT_EQ(last, 10000) << "rank " << rank;
  EXPECT_EQ(count(result.err, "]<stderr>:"), 80000);
}

TEST(LauncherOutput, LongLinesAreNotMixed) {
  // Each line is too long for a single write to a pipe. But the launcher can hold each line back until the
  // line is complete.
  const Ended result =
      run_shell({"-n", "4"}, "for i in 1 2 3; do head -c 50000 /dev/zero | tr '\\0' $RANK; echo; done");
  const auto lines = lines_of(result.out);
  EXPECT_EQ(lines.size(), 12u);
  for (const std::string& line : lines) {
    EXPECT_EQ(line.size(), 50000u);
    EXPECT_EQ(line.find_first_not_of(line[0]), std::string::npos);
  }
}

TEST(LauncherOutput, EndlessLinesPass) {
  const Ended result = run_shell({"-n", "1"}, "head -c 3000000 /dev/zero | tr '\\0' x");
  EXPECT_EQ(result.out, std::string(3000000, 'x'));
}

TEST(LauncherOutput, UnfinishedLinesAreShownWhenTheirRankWaits) {
  // The rank continues only after the test has seen its prompt.
  test::ScratchFolder folder;
  Command command({"run", "-n", "1", "sh", "-c",
                   "printf 'ready? '; while [ ! -e " + (folder / "go") +
                       " ]; do sleep 0.05; done; printf '50%%\\r'; "
                       "while [ ! -e " +
                       (folder / "on") + " ]; do sleep 0.05; done; echo yes"});
  ASSERT_TRUE(command.wait_for_output("ready? "));
  close(open((folder / "go").c_str(), O_CREAT | O_WRONLY, 0644));
  ASSERT_TRUE(command.wait_for_output("50%\r"));
  close(open((folder / "on").c_str(), O_CREAT | O_WRONLY, 0644));
  EXPECT_EQ(command.wait().out, "ready? 50%\ryes\n");
}

TEST(LauncherOutput, AnotherRankStartsOnALineOfItsOwn) {
  test::ScratchFolder folder;
  Command command({"run", "-n", "2", "--tag-output", "sh", "-c",
                   "if [ $RANK = 0 ]; then printf 'half'; sleep 600; fi; while [ ! -e " + (folder / "go") +
                       " ]; do sleep 0.05; done; echo whole; exit 1"});
  ASSERT_TRUE(command.wait_for_output("half"));
  close(open((folder / "go").c_str(), O_CREAT | O_WRONLY, 0644));
  EXPECT_EQ(command.wait().out, "[1,0]<stdout>:half\n[1,1]<stdout>:whole\n");
}

TEST(LauncherOutput, LastWordsWithoutNewline) {
  EXPECT_EQ(run_shell({"-n", "1"}, "printf tail").out, "tail");
  const Ended failed = run_shell({"-n", "1"}, "printf 'last words' >&2; exit 1");
  EXPECT_THAT(failed.err, HasSubstr("last words\ntutti run: rank 0"));
  EXPECT_THAT(failed.err, HasSubstr("  rank 0| last words\n"));
}

// Runs a shell pipeline under `tutti run -n 1`. The pipeline can itself call `tutti`. The shell then prints
// "status N" to stderr.
Ended run_by_shell(const std::string& pipeline) {
  return tutti({"run", "-n", "1", "bash", "-c",
                "PATH=" TUTTI_BIN_DIR ":$PATH; set -o pipefail; " + pipeline + "; echo status $? >&2"});
}

TEST(LauncherOutput, FullDiskIsNamedAndNoRankIsBlamed) {
  test::ScratchFolder folder;
  const Ended result =
      run_by_shell("tutti run -n 2 -- sh -c 'seq 100000 && touch " + (folder / "$RANK") + "' > /dev/full");
  EXPECT_THAT(result.err,
              HasSubstr("cannot write stdout (/dev/full): No space left on device; the ranks continue"));
  EXPECT_THAT(result.err, HasSubstr("status 74\n"));
  EXPECT_THAT(result.err, Not(HasSubstr("rank 0")));
  for (const char* rank : {"0", "1"}) EXPECT_EQ(access((folder / rank).c_str(), F_OK), 0) << rank;
  // The exit status of a failed rank takes precedence over 74, the status for lost output.
  EXPECT_THAT(run_by_shell("tutti run -n 1 -- sh -c 'echo lost; exit 3' > /dev/full").err,
              HasSubstr("status 3\n"));
  // If stderr is lost too, only the exit status shows the loss.
  EXPECT_EQ(run_by_shell("tutti run -n 1 -- echo lost > /dev/full 2>&1").err, "status 74\n");
}

TEST(LauncherOutput, FullDiskAtOneStreamIsSeenWhereTheReaderOfTheOtherHasLeft) {
  test::ScratchFolder folder;
  const std::string logs = " tutti run -n 1 --output-filename " + (folder / "logs") + " -- sh -c ";
  // The script writes more bytes than a pipe holds. So its last output comes after the reader
  // (`true`) has left.
  const std::string script = "'yes | head -c 1000000; echo lost >&2'";
  EXPECT_THAT(run_by_shell("{" + logs + script + " 2> /dev/full; echo status $? >&2; } | true").err,
              HasSubstr("status 74\n"));
}

TEST(LauncherOutput, LogFileThatMayNotGrowIsNamed) {
  test::ScratchFolder folder;
  const Ended result = run_by_shell("ulimit -f 1; tutti run -n 2 --output-filename " +
                                    (folder / "logs:nocopy") + " seq 10000");
  EXPECT_THAT(result.err, HasSubstr("status 74\n"));
  EXPECT_EQ(count(result.err, "cannot write " + (folder / "logs/1/rank.1/stdout") + ": File too large"), 1)
      << result.err;
}

TEST(LauncherOutput, FullDiskUnderOtherCommands) {
  const Ended result = run_by_shell("tutti info > /dev/full");
  EXPECT_EQ(result.err, "tutti info: cannot write to stdout: No space left on device\nstatus 74\n");
  EXPECT_THAT(run_by_shell("tutti bench barrier --iterations 1 > /dev/full").err, HasSubstr("status 74\n"));
  EXPECT_THAT(run_by_shell("tutti --version > /dev/full").err, HasSubstr("status 74\n"));
  EXPECT_THAT(run_by_shell("tutti bench barrier --csv /dev/full").err,
              HasSubstr("cannot write /dev/full: No space left on device"));
}

TEST(LauncherOutput, ReaderThatGoesAwayBlamesNobody) {
  // A rank may ignore SIGPIPE, as Python does, and fail by itself.
  for (const char* script : {"yes", "trap \"\" PIPE; yes || exit 5"}) {
    const Ended result = run_by_shell("tutti run -n 2 -- sh -c '" + std::string(script) + "' | head -n 1");
    EXPECT_EQ(result.out, "y\n");
    EXPECT_EQ(result.err, "status 141\n");
  }
}

TEST(LauncherOutput, ReaderThatGoesAwayEndsTheWriters) {
  Command command({"run", "-n", "2", "sh", "-c", "exec " TUTTI_BIN_DIR "/tutti run -n 2 yes | head -n 1"});
  EXPECT_TRUE(command.wait_for_output("y\n", 2));
  const Ended result = command.wait();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(command.wait_until_gone());
}

TEST(LauncherOutput, SlowReaderHoldsNobodyUp) {
  // No process reads the output while rank 1 fails, but the world must still end.
  test::ScratchFolder folder;
  Command command(
      {"run", "-n", "2", "sh", "-c",
       "[ $RANK = 0 ] && exec yes; while [ ! -e " + (folder / "go") + " ]; do sleep 0.05; done; exit 6"});
  ASSERT_TRUE(command.wait_for_output("y\n", 10));
  close(open((folder / "go").c_str(), O_CREAT | O_WRONLY, 0644));
  for (int i = 0; i < 600 && command.marked().size() > 2; ++i) usleep(50000);
  EXPECT_LE(command.marked().size(), 2u) << "ranks still run";
  const Ended result = command.wait();
  EXPECT_EQ(result.status, 6);
  EXPECT_THAT(result.err, Not(HasSubstr("signal 13")));
}

}  // namespace
}  // namespace tutti::launcher_test
