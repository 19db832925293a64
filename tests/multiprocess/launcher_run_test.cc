#include <fstream>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/multiprocess/launcher_process.h"
#include "tests/support/scratch_folder.h"

// Tests which ranks start, which settings they get, and which exit status the job has.
namespace tutti::launcher_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LauncherRun, AllSucceed) {
  for (const int ranks : {1, 2, 3, 4, 7, 8, 16}) {
    const Ended result = run_shell({"-n", std::to_string(ranks)}, "echo rank $RANK of $WORLD_SIZE");
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const auto lines = lines_of(result.out);
    std::set<std::string> expected;
    for (int rank = 0; rank < ranks; ++rank) {
      expected.insert("rank " + std::to_string(rank) + " of " + std::to_string(ranks));
    }
    EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()), expected);
    EXPECT_EQ(lines.size(), static_cast<std::size_t>(ranks));
  }
}

TEST(LauncherRun, SetsVariables) {
  const Ended result =
      run_shell({"-n", "2"},
                "[ $RANK = $TUTTI_RANK ] && [ $WORLD_SIZE = $TUTTI_WORLD_SIZE ] && [ $LOCAL_RANK = "
                "$TUTTI_LOCAL_RANK ] && "
                "[ $LOCAL_WORLD_SIZE = $TUTTI_LOCAL_WORLD_SIZE ] && [ $WORLD_SIZE = 2 ] && [ "
                "$LOCAL_WORLD_SIZE = 2 ] && "
                "[ $LOCAL_RANK = $RANK ] && [ -n $TUTTI_JOB_ID ] && [ $MASTER_ADDR = 127.0.0.1 ] && "
                "[ $MASTER_PORT -gt 0 ] && [ $TUTTI_STORE != 127.0.0.1:$MASTER_PORT ] && "
                "echo $TUTTI_STORE $TUTTI_JOB_ID $MASTER_PORT");
  EXPECT_EQ(result.status, 0) << result.err;
  const auto lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 2u) << result.out;
  EXPECT_EQ(lines[0], lines[1]);
  EXPECT_THAT(lines[0], testing::StartsWith("127.0.0.1:"));
}

// Ranks of different sessions would share a processor badly (tools/run/spawn.cc). A signal to one
// process group must not reach two ranks.
TEST(LauncherRun, RanksAreInOneSessionAndInGroupsOfTheirOwn) {
  const std::string sessions = run_shell({"-n", "3"}, "cut -d ' ' -f 6 /proc/$$/stat").out;
  const std::string groups = run_shell({"-n", "3"}, "cut -d ' ' -f 5 /proc/$$/stat").out;
  const auto different = [](const std::string& text) {
    const auto lines = lines_of(text);
    EXPECT_EQ(lines.size(), 3u);
    return std::set<std::string>(lines.begin(), lines.end()).size();
  };
  EXPECT_EQ(different(sessions), 1u) << sessions;
  EXPECT_EQ(different(groups), 3u) << groups;
}

TEST(LauncherRun, MoreRanksThanCoresDoNotSpinUnlessToldTo) {
  EXPECT_EQ(run_shell({"-n", "256"}, "[ $RANK != 255 ] || echo spin=$TUTTI_SPIN").out, "spin=0\n");
  EXPECT_EQ(run_shell({"-n", "256", "-x", "TUTTI_SPIN=7us"}, "[ $RANK != 255 ] || echo spin=$TUTTI_SPIN").out,
            "spin=7us\n");
  EXPECT_EQ(run_shell({"-n", "1"}, "echo spin=$TUTTI_SPIN").out, "spin=\n");
}

TEST(LauncherRun, ExportsVariables) {
  const Ended result = tutti({"run", "-n", "1", "-x", "GIVEN=a b=c", "-x", "KEPT", "-x", "MISSING", "sh",
                              "-c", "echo \"$GIVEN|$KEPT|${MISSING-none}\""},
                             "", {"KEPT=kept", "GIVEN=overridden"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "a b=c|kept|none\n");
  EXPECT_THAT(result.err, HasSubstr("-x MISSING"));
}

TEST(LauncherRun, ProgramsOptionsAreItsOwn) {
  EXPECT_EQ(tutti({"run", "-n", "1", "echo", "-n", "5", "--", "--tag-output"}).out, "5 -- --tag-output");
  EXPECT_EQ(tutti({"run", "-np", "1", "--", "echo", "-x"}).out, "-x\n");
  EXPECT_EQ(tutti({"run", "--np", "1", "echo", "-n", "--help"}).out, "--help");
}

TEST(LauncherRun, TakesAnMpirunCommand) {
  const Words words = {"run",
                       "--allow-run-as-root",
                       "-np",
                       "2",
                       "-bind-to",
                       "none",
                       "-map-by",
                       "slot",
                       "-mca",
                       "pml",
                       "ob1",
                       "-mca",
                       "btl_tcp_if_exclude",
                       "lo,docker0",
                       "-genv",
                       "GIVEN",
                       "a b",
                       "-tag-output",
                       "sh",
                       "-c",
                       "echo $TUTTI_SOCKET_IFNAME, $GIVEN"};
  Ended result = tutti(words, "", {"TUTTI_SOCKET_IFNAME="});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("[1,1]<stdout>:^=lo,docker0, a b\n"));
  EXPECT_EQ(result.err, "tutti run: ignored, since only Open MPI knows their meaning: -mca pml ob1\n");
  result = tutti(words, "", {"TUTTI_SOCKET_IFNAME=eth"});
  EXPECT_THAT(result.out, HasSubstr("[1,0]<stdout>:eth, a b\n"));
}

// Runs three ranks. Rank 1 kills itself. The other ranks run the script `others` after the launcher
// has noticed that rank 1 has ended. In this script, `gone RANK` waits until the launcher has
// noticed that rank RANK has ended.
Ended run_with_recovery(const std::string& others) {
  const test::ScratchFolder folder;
  const std::string pid = folder / "pid.";
  return run_shell(
      {"-n", "3", "--enable-recovery"},
      "gone() { until [ -e " + pid + "$1 ]; do sleep 0.01; done; while [ -e /proc/$(cat " + pid +
          "$1) ]; do sleep 0.01; done; }; echo $$ > " + pid + "new$RANK; mv " + pid + "new$RANK " + pid +
          "$RANK; if [ $RANK = 1 ]; then echo last words >&2; kill -9 $$; fi; gone 1; " + others);
}

TEST(LauncherRun, WithRecoveryTheOthersGoOn) {
  Ended result = run_with_recovery("echo went on");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(count(result.out, "went on"), 2);
  EXPECT_THAT(result.err, HasSubstr("was ended by signal 9 (Killed); the others continue. Its last lines"));
  EXPECT_THAT(result.err, HasSubstr("  rank 1| last words\n"));
  // No rank succeeds, so the job has the status of the first failure.
  result = run_with_recovery("exit 3");
  EXPECT_EQ(result.status, 128 + 9) << result.err;
  EXPECT_EQ(count(result.err, "exited with status 3"), 2) << result.err;
  // The first success makes earlier failures irrelevant. Rank 0 succeeds after the failure of rank
  // 1 and before the failure of rank 2. So the job has the status of rank 2.
  result = run_with_recovery("[ $RANK = 0 ] || { gone 0; exit 4; }");
  EXPECT_EQ(result.status, 4) << result.err;
}

TEST(LauncherRun, FirstFailureGivesTheStatusAndIsNamed) {
  const Ended result =
      run_shell({"-n", "4"},
                "if [ $RANK = 2 ]; then echo pid $$; echo reason one >&2; echo reason two >&2; exit 3; fi; "
                "trap 'exit 9' TERM; sleep 600 & wait");
  EXPECT_EQ(result.status, 3);
  const std::string pid = lines_of(result.out).at(0).substr(4);
  EXPECT_THAT(result.err, HasSubstr("rank 2 (host "));
  EXPECT_THAT(result.err, HasSubstr("pid " + pid + ") exited with status 3"));
  EXPECT_THAT(result.err, HasSubstr("  rank 2| reason one\n  rank 2| reason two\n"));
  EXPECT_THAT(result.err, Not(HasSubstr("status 9")));
}

TEST(LauncherRun, OnlyTheLastLinesAreRepeated) {
  const Ended result = run_shell({"-n", "1"}, "seq 5000 >&2; exit 1");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("  rank 0| 4991\n"));
  EXPECT_THAT(result.err, HasSubstr("  rank 0| 5000\n"));
  EXPECT_THAT(result.err, Not(HasSubstr("  rank 0| 4990\n")));
}

TEST(LauncherRun, DeathBySignal) {
  const Ended result = run_shell({"-n", "3"}, "[ $RANK = 1 ] && kill -SEGV $$; sleep 600");
  EXPECT_EQ(result.status, 128 + SIGSEGV);
  EXPECT_THAT(result.err, HasSubstr("rank 1 (host "));
  EXPECT_THAT(result.err, HasSubstr("was ended by signal 11"));
}

TEST(LauncherRun, DeathByALimitNamesIt) {
  EXPECT_THAT(run_shell({"-n", "1"}, "kill -XFSZ $$").err, HasSubstr("RLIMIT_FSIZE, ulimit -f"));
}

TEST(LauncherRun, FailureAfterOthersSucceeded) {
  EXPECT_EQ(run_shell({"-n", "3"}, "[ $RANK != 2 ] || { sleep 0.2; exit 5; }").status, 5);
}

TEST(LauncherRun, OneRankAmongMany) {
  test::ScratchFolder folder;
  const Ended result = run_shell({"-n", "8", "--output-filename", folder / "logs", "--tag-output"},
                                 "echo hi; [ $RANK = 5 ] && exit 7; sleep 600");
  EXPECT_EQ(result.status, 7);
  EXPECT_EQ(read_file(folder / "logs/1/rank.5/stdout"), "hi\n");
  EXPECT_THAT(result.out, HasSubstr("[1,5]<stdout>:hi\n"));
  EXPECT_THAT(result.err, HasSubstr("rank 5 (host "));
}

TEST(LauncherRun, ProgramThatIsNotThere) {
  const Ended missing = tutti({"run", "-n", "4", "no-such-program-here"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(missing.err, "tutti run: no-such-program-here: not found in PATH or in the current folder\n");
  const Ended path = tutti({"run", "-n", "4", "./no/such"});
  EXPECT_EQ(path.status, 127);
  EXPECT_EQ(path.err, "tutti run: ./no/such: not found\n");
  const Ended folder = tutti({"run", "-n", "2", "/"});
  EXPECT_EQ(folder.status, 126);
  EXPECT_EQ(lines_of(folder.err).size(), 1u) << folder.err;
}

// Runs `tutti run` in `folder`. Like mpirun, the launcher looks for programs in PATH first, and then in the
// current folder.
Ended run_in(const test::ScratchFolder& folder, const std::string& words, const std::string& path = "") {
  return tutti(
      {"run", "-n", "1", "sh", "-c",
       "cd " + folder.path() + "; PATH=" + path + "$PATH; " TUTTI_BIN_DIR "/tutti run -n 1 " + words});
}

void write_file(const std::string& path, const std::string& text, int mode) {
  std::ofstream(path) << text;
  chmod(path.c_str(), static_cast<mode_t>(mode));
}

TEST(LauncherRun, ProgramsOfTheCurrentFolderAreFound) {
  test::ScratchFolder folder;
  test::ScratchFolder first;
  write_file(folder / "prog", "#!/bin/sh\necho here", 0755);
  EXPECT_EQ(run_in(folder, "prog").out, "here\n");
  EXPECT_EQ(run_in(folder, "./prog").out, "here\n");
  write_file(first / "prog", "#!/bin/sh\necho in PATH", 0755);
  EXPECT_EQ(run_in(folder, "prog", first.path() + ":").out, "in PATH\n");
  EXPECT_EQ(run_in(folder, "./prog", first.path() + ":").out, "here\n");
}

TEST(LauncherRun, RanksStartInTheFolderAskedFor) {
  test::ScratchFolder folder;
  test::ScratchFolder other;
  write_file(folder / "prog", "#!/bin/sh\npwd; echo $PWD", 0755);
  for (const char* option : {"--wdir", "-wdir", "--wd", "-wd"}) {
    for (const char* name : {"prog", "./prog"}) {
      const std::string words = std::string(option) + " " + folder.path() + " --output-filename logs " + name;
      EXPECT_EQ(run_in(other, words).out, folder.path() + "\n" + folder.path() + "\n") << words;
    }
  }
  EXPECT_NE(read_file(other / "logs/1/rank.0/stdout"), "");
  const Ended missing = run_in(other, "--wdir /no/such true");
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("tutti run: --wdir /no/such: No such file or directory\n"));
}

TEST(LauncherRun, FileThatCannotBeExecutedGetsARemedy) {
  test::ScratchFolder folder;
  write_file(folder / "hello.py", "print('hello')\n", 0644);
  write_file(folder / "bare.py", "print('hello')\n", 0755);
  write_file(folder / "words", "echo hello\n", 0755);
  write_file(folder / "plain", "#!/bin/sh\n", 0644);
  write_file(folder / "lost", "#!/no/such/python\n", 0755);
  write_file(folder / "other", "\177ELF for nobody", 0755);
  const std::pair<const char*, const char*> expected[] = {
      {"hello.py",
       "cannot start hello.py: it may not be executed; try python[3]? hello.py, or chmod \\+x ./hello.py"},
      {"./bare.py", "cannot start ./bare.py: it is not a program, .*; try python[3]? ./bare.py"},
      {"words", "cannot start words: it is not a program, and its first line names none .*; try sh words"},
      {"./plain", "cannot start ./plain: it may not be executed; try chmod \\+x ./plain"},
      {"./lost", "cannot start ./lost: it needs a file that is not there: .* #!/no/such/python"},
      {"other", "cannot start other: it is built for another kind of machine"},
      {".", "cannot start .: it is a folder"}};
  for (const auto& [name, message] : expected) {
    const Ended result = run_in(folder, name);
    EXPECT_EQ(result.status, 126) << name;
    EXPECT_THAT(lines_of(result.err).at(0), testing::MatchesRegex(std::string("tutti run: ") + message));
  }
}

TEST(LauncherRun, BadArguments) {
  const Words bad[] = {{"run", "-n", "0", "true"},
                       {"run", "-n", "-1", "true"},
                       {"run", "-n", "many", "true"},
                       {"run", "true"},
                       {"run", "-n", "2"},
                       {"run", "-n", "2", "--"},
                       {"run", "-n", "2", "--no-such-option", "true"},
                       {"run", "-n", "2", "-x", "=v", "true"},
                       {"run", "-np", "1", "true", ":", "-np", "1", "true"},
                       {"run", "-n", "2", "--kill-grace", "soon", "true"},
                       {"store"},
                       {"store", "--port", "x"},
                       {"no-such-command"},
                       {}};
  for (const Words& arguments : bad) {
    const Ended result = tutti(arguments);
    EXPECT_EQ(result.status, 2) << testing::PrintToString(arguments) << result.err;
    EXPECT_NE(result.err, "") << testing::PrintToString(arguments);
    EXPECT_EQ(result.out, "") << testing::PrintToString(arguments);
  }
}

TEST(LauncherRun, RanksMustBeCounted) {
  EXPECT_THAT(tutti({"run", "true"}).err,
              HasSubstr("-n N, the number of ranks, is required without hosts; -n auto counts"));
  EXPECT_THAT(tutti({"run", "--", "true"}).err, HasSubstr("-n N, the number of ranks, is required"));
}

TEST(LauncherRun, Help) {
  EXPECT_THAT(tutti({"--help"}).out, HasSubstr("run"));
  EXPECT_THAT(tutti({"--version"}).out, testing::StartsWith("tutti "));
  const Ended help = tutti({"run", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("--output-filename"));
}

TEST(LauncherRun, RanksKeepInheritedLimitsAndSignals) {
  const Ended here = tutti({"run", "-n", "1", "sh", "-c", "ulimit -Sn; grep SigIgn /proc/self/status"});
  const Ended nested = tutti({"run", "-n", "1", TUTTI_BIN_DIR "/tutti", "run", "-n", "1", "sh", "-c",
                              "ulimit -Sn; grep SigIgn /proc/self/status"});
  EXPECT_EQ(here.out, nested.out);
}

TEST(LauncherRun, DescriptorsThatAreShortAreNamed) {
  for (const char* limit : {"5", "8", "12", "14", "16", "24"}) {
    const std::string words =
        std::string("ulimit -n ") + limit + "; exec " TUTTI_BIN_DIR "/tutti run -n 4 true";
    const Ended result = tutti({"run", "-n", "1", "sh", "-c", words});
    EXPECT_EQ(result.status, 1) << limit;
    EXPECT_THAT(lines_of(result.err).at(0),
                HasSubstr("this process has used up the " + std::string(limit) +
                          " file descriptors that it may have (RLIMIT_NOFILE, ulimit -n)"));
  }
}

TEST(LauncherStore, ServesUntilToldToEnd) {
  for (const int number : {SIGTERM, SIGINT}) {
    Command command({"store", "--port", "0"});
    ASSERT_TRUE(command.wait_for_output("serving at 127.0.0.1:"));
    command.signal(number);
    const Ended ended = command.wait();
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.err, HasSubstr("served 0 requests\n"));
  }
}

TEST(LauncherStore, PortInUseIsSaid) {
  Command first({"store", "--port", "0"});
  ASSERT_TRUE(first.wait_for_output("\n"));
  first.signal(SIGTERM);
  const std::string line = first.wait().out;
  const std::string port = line.substr(line.rfind(':') + 1, line.size() - line.rfind(':') - 2);
  Command holder({"store", "--port", port});
  ASSERT_TRUE(holder.wait_for_output(":" + port));
  const Ended second = tutti({"store", "--port", port});
  EXPECT_EQ(second.status, 1);
  EXPECT_THAT(second.err, HasSubstr(port));
}

}  // namespace
}  // namespace tutti::launcher_test
