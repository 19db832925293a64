#include <chrono>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include "tests/multiprocess/launcher_process.h"

// Tests signals to the launcher. No process may remain, however the launcher ends.
namespace tutti::launcher_test {
namespace {

using testing::HasSubstr;
using testing::Not;

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// This part of a script starts two processes: one that ignores signals and has its own session and children,
// and one in the rank's process group.
constexpr const char* family =
    "setsid sh -c 'trap \"\" TERM INT HUP; echo ready; sleep 1000 & while :; do sleep 1000; done' & "
    "sleep 1000 & echo ready; ";

Words run(int ranks, const std::string& script) {
  return {"run", "-n", std::to_string(ranks), "--kill-grace", "300ms", "--", "sh", "-c", script};
}

TEST(LauncherSignals, EndingSignalsTakeAllDown) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    Command command(run(3, "echo ready; sleep 600"));
    ASSERT_TRUE(command.wait_for_output("ready\n", 3));
    command.signal(number);
    const Ended result = command.wait();
    EXPECT_EQ(result.status, 128 + number) << result.err;
    EXPECT_THAT(result.err, HasSubstr("ending the ranks"));
    EXPECT_THAT(result.err, Not(HasSubstr("rank 0 (")));
    EXPECT_TRUE(command.marked().empty());
  }
}

TEST(LauncherSignals, RanksMayEndInOrder) {
  Command command({"run", "-n", "2", "--kill-grace", "30s", "sh", "-c",
                   "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done"});
  ASSERT_TRUE(command.wait_for_output("ready\n", 2));
  command.signal(SIGTERM);
  const Ended result = command.wait();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(count(result.out, "saved\n"), 2);
}

TEST(LauncherSignals, WhoIgnoresTermIsKilled) {
  Command command(run(2, "trap '' TERM INT; echo ready; while :; do sleep 0.05; done"));
  ASSERT_TRUE(command.wait_for_output("ready\n", 2));
  command.signal(SIGTERM);
  EXPECT_EQ(command.wait().status, 128 + SIGTERM);
  EXPECT_TRUE(command.marked().empty());
}

TEST(LauncherSignals, SecondSignalDoesNotWait) {
  Command command({"run", "-n", "2", "--kill-grace", "10m", "sh", "-c",
                   "trap 'echo told' TERM INT; echo ready; while :; do sleep 0.05; done"});
  ASSERT_TRUE(command.wait_for_output("ready\n", 2));
  command.signal(SIGINT);
  ASSERT_TRUE(command.wait_for_output("told\n", 2));
  command.signal(SIGINT);
  EXPECT_EQ(command.wait().status, 128 + SIGINT);
  EXPECT_TRUE(command.marked().empty());
}

TEST(LauncherSignals, UserSignalsAreHandedOn) {
  Command command(
      run(2, "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo ready; while :; do sleep 0.05; done"));
  ASSERT_TRUE(command.wait_for_output("ready\n", 2));
  command.signal(SIGUSR1);
  ASSERT_TRUE(command.wait_for_output("one\n", 2));
  command.signal(SIGUSR2);
  const Ended result = command.wait();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(count(result.out, "two\n"), 2);
}

TEST(LauncherSignals, StopAndContinue) {
  Command command(run(2, "echo $$; echo ready; while :; do sleep 0.05; done"));
  ASSERT_TRUE(command.wait_for_output("ready\n", 2));
  command.signal(SIGTSTP);
  // The launcher, the ranks and their child processes are all stopped. Only the process that watches the
  // ranks is not stopped. A shell is in state "D" if its child was stopped before exec.
  EXPECT_TRUE(eventually([&] {
    int awake = 0;
    for (const pid_t pid : command.marked()) {
      const std::string state = process_state(pid);
      awake += state == "S" || state == "R";
    }
    return awake == 1 && process_state(command.pid()) == "T";
  }));
  command.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] {
    for (const pid_t pid : command.marked()) {
      if (process_state(pid) == "T") return false;
    }
    return true;
  }));
  command.signal(SIGTSTP);
  EXPECT_TRUE(eventually([&] { return process_state(command.pid()) == "T"; }));
  command.signal(SIGCONT);
  command.signal(SIGTERM);
  EXPECT_EQ(command.wait().status, 128 + SIGTERM);
}

TEST(LauncherSignals, KilledLauncherLeavesNothing) {
  for (int round = 0; round < 3; ++round) {
    Command command(run(3, std::string(family) + "wait"));
    ASSERT_TRUE(command.wait_for_output("ready\n", 6));
    EXPECT_TRUE(eventually([&] { return command.marked().size() >= 3u * 4 + 2; }));
    command.signal(SIGKILL);
    EXPECT_EQ(command.wait().status, 128 + SIGKILL);
    EXPECT_TRUE(command.wait_until_gone());
  }
}

TEST(LauncherSignals, KilledWatcherLeavesNothing) {
  Command command(run(2, std::string("echo $PPID is watcher; ") + family + "wait"));
  ASSERT_TRUE(command.wait_for_output("ready\n", 4));
  ASSERT_TRUE(command.wait_for_output(" is watcher\n", 2));
  std::vector<pid_t> watchers;
  for (const pid_t pid : command.marked()) {
    const std::string name = read_file("/proc/" + std::to_string(pid) + "/comm");
    if (name == "tutti\n" && pid != command.pid()) watchers.push_back(pid);
  }
  ASSERT_EQ(watchers.size(), 1u);
  kill(watchers[0], SIGKILL);
  EXPECT_EQ(command.wait().status, 128 + SIGKILL);
  EXPECT_TRUE(command.marked().empty());
}

TEST(LauncherSignals, GrandchildrenDieWithAFailedWorld) {
  Command command(run(3, std::string(family) + "[ $RANK = 1 ] && { sleep 0.3; exit 8; }; wait"));
  const Ended result = command.wait();
  EXPECT_EQ(result.status, 8) << result.err;
  EXPECT_TRUE(command.marked().empty());
}

TEST(LauncherSignals, GrandchildrenDieWithASuccessfulWorld) {
  Command command(run(2, std::string(family) + "sleep 0.2; exit 0"));
  const Ended result = command.wait();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(command.marked().empty());
}

TEST(LauncherSignals, IgnoredSignalsStayIgnored) {
  // nohup ignores SIGHUP in the same way.
  signal(SIGHUP, SIG_IGN);
  Command command(run(1, "echo ready; sleep 600"));
  signal(SIGHUP, SIG_DFL);
  ASSERT_TRUE(command.wait_for_output("ready\n"));
  command.signal(SIGHUP);
  command.signal(SIGHUP);
  command.signal(SIGTERM);
  EXPECT_EQ(command.wait().status, 128 + SIGTERM);
}

}  // namespace
}  // namespace tutti::launcher_test
