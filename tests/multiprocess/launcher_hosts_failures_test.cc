// Tests failures of `tutti run` on several hosts. In most cases the job ends on all hosts, and the
// launcher reports what has failed on which host.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/multiprocess/job_over_hosts.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string wait_for_long = "echo rank $RANK waits; exec sleep 1000";

// Returns how often to repeat a test whose result may depend on chance. The number is only two unless
// TEST_ALL is set, since several of these tests wait until a silent host counts as lost.
int repetitions() { return std::getenv("TEST_ALL") != nullptr ? 20 : 2; }

class LauncherHostsFailures : public JobOverHosts {
 protected:
  void SetUp() override { make_hosts(2); }

  // Starts two ranks on each host. Each rank prints that it waits, and then sleeps.
  Process launch_waiting(Words options = {}) const {
    options.insert(options.begin(), {"-H", list(2)});
    return launch_shell(options, wait_for_long);
  }
  static void await_ranks(Process& job) {
    for (int rank = 0; rank < 4; ++rank) {
      ASSERT_TRUE(job.wait_for_output("rank " + std::to_string(rank) + " waits\n")) << job.report();
    }
  }

  const ScratchFolder folder_;
};

TEST_F(LauncherHostsFailures, AKilledRankIsNamedWithItsHost) {
  for (int run = 0; run < repetitions(); ++run) {
    Process job = launch_shell({"-H", list(2)}, "echo rank $RANK is $$; echo epoch 3 >&2; exec sleep 1000");
    ASSERT_TRUE(job.wait_for_output("rank 3 is ")) << job.report();
    const pid_t victim = processes_with(1, "sleep 1000").front();
    kill(victim, SIGKILL);
    EXPECT_EQ(job.wait(), 137) << job.report();
    EXPECT_THAT(job.err(),
                AllOf(HasSubstr("(host beta, pid " + std::to_string(victim) + ") was ended by signal 9"),
                      HasSubstr("the others are being ended"), HasSubstr("| epoch 3")))
        << job.report();
    ASSERT_TRUE(ends_everywhere());
  }
}

// Ranks on other hosts fail soon after a rank has died, and the report about the dead rank may
// arrive last.
TEST_F(LauncherHostsFailures, TheFirstFailureIsBlamed) {
  for (int run = 0; run < repetitions(); ++run) {
    Process job = launch({"-H", list(2), "--", built("tests/busy_rank"), folder_ / "stop"});
    const pid_t victim = processes_with(1, "busy_rank").front();
    kill(victim, SIGKILL);
    EXPECT_EQ(job.wait(), 137) << job.report();
    EXPECT_THAT(job.err(), HasSubstr("(host beta, pid " + std::to_string(victim) + ") was ended by signal 9"))
        << job.report();
    ASSERT_TRUE(ends_everywhere());
  }
}

TEST_F(LauncherHostsFailures, AHostThatIsCutOffIsLost) {
  for (int run = 0; run < repetitions(); ++run) {
    Process job = launch_waiting({"--lease", "1s"});
    await_ranks(job);
    hosts().cut(1);
    EXPECT_EQ(job.wait(), 1) << job.report();
    EXPECT_THAT(job.err(),
                HasSubstr("host beta is lost: nothing has arrived from it for 1s; it had ranks 2 3"))
        << job.report();
    ASSERT_TRUE(ends_everywhere());
    hosts().mend(1);
  }
}

TEST_F(LauncherHostsFailures, AStoppedAgentIsLost) {
  for (int run = 0; run < repetitions(); ++run) {
    Process job = launch_waiting({"--lease", "1s"});
    await_ranks(job);
    kill(agent_on(1).back(), SIGSTOP);
    EXPECT_EQ(job.wait(), 1) << job.report();
    EXPECT_THAT(job.err(), HasSubstr("host beta is lost: ")) << job.report();
    ASSERT_TRUE(ends_everywhere());
  }
}

// Both processes of the agent are stopped, so the agent cannot end its ranks. The launcher must end
// them, with a second ssh.
TEST_F(LauncherHostsFailures, AFrozenAgentIsLost) {
  Process job = launch_waiting({"--lease", "1s"});
  await_ranks(job);
  for (const pid_t pid : agent_on(1)) kill(pid, SIGSTOP);
  EXPECT_EQ(job.wait(), 1) << job.report();
  EXPECT_THAT(job.err(), HasSubstr("host beta is lost: nothing has arrived from it for 1s")) << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHostsFailures, AKilledAgentIsLost) {
  for (int run = 0; run < repetitions(); ++run) {
    Process job = launch_waiting();
    await_ranks(job);
    const std::vector<pid_t> agent = agent_on(1);
    kill(run % 2 == 0 ? agent.front() : agent.back(), SIGKILL);
    EXPECT_EQ(job.wait(), 1) << job.report();
    EXPECT_THAT(job.err(), HasSubstr("host beta is lost: ")) << job.report();
    ASSERT_TRUE(ends_everywhere());
  }
}

TEST_F(LauncherHostsFailures, RanksEndIfTheLauncherIsKilled) {
  for (int run = 0; run < repetitions(); ++run) {
    Process job = launch_waiting();
    await_ranks(job);
    job.signal(SIGKILL);
    EXPECT_EQ(job.wait(), 137) << job.report();
    ASSERT_TRUE(ends_everywhere());
  }
}

// The launcher's machine loses its network before the launcher is killed, so that no agent notices that the
// launcher has ended.
TEST_F(LauncherHostsFailures, RanksEndIfTheLaunchersMachineIsSwitchedOff) {
  Process job = launch_waiting({"--lease", "1s"});
  await_ranks(job);
  hosts().cut(hosts().desk());
  job.signal(SIGKILL);
  EXPECT_EQ(job.wait(), 137) << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHostsFailures, TheFirstInterruptIsGraceful) {
  Process job = launch_shell({"-H", list(1)},
                             "trap 'echo rank $RANK has cleaned up; exit 0' INT; echo rank $RANK waits; "
                             "while true; do sleep 0.1; done");
  ASSERT_TRUE(job.wait_for_output("rank 0 waits\n") && job.wait_for_output("rank 1 waits\n")) << job.report();
  job.signal(SIGINT);
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_THAT(job.out(), AllOf(HasSubstr("rank 0 has cleaned up"), HasSubstr("rank 1 has cleaned up")));
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHostsFailures, TheSecondInterruptEndsAllAtOnce) {
  Process job = launch_shell({"-H", list(1), "--kill-grace", "1000s"},
                             "trap '' INT; echo rank $RANK waits; while true; do sleep 0.1; done");
  ASSERT_TRUE(job.wait_for_output("rank 0 waits\n") && job.wait_for_output("rank 1 waits\n")) << job.report();
  job.signal(SIGINT);
  std::string err;
  ASSERT_TRUE(eventually([&] { return job.err().find("Interrupt: ending the ranks") != std::string::npos; }));
  job.signal(SIGINT);
  EXPECT_EQ(job.wait(), 130) << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHostsFailures, AnInterruptBeforeTheHostsAreUpEndsAllAtOnce) {
  hosts().cut(1);
  Process job = launch_waiting();
  ASSERT_TRUE(eventually([&] { return job.err().find("1 of 2 hosts are up") != std::string::npos; }));
  job.signal(SIGINT);
  EXPECT_EQ(job.wait(), 130) << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHostsFailures, AHostThatDoesNotComeUpIsNamed) {
  hosts().cut(1);
  Process job = launch_waiting({"--start-timeout", "3s"});
  EXPECT_EQ(job.wait(), 1) << job.report();
  EXPECT_THAT(job.err(), AllOf(HasSubstr("1 of 2 hosts are up after 2.0 s; waiting for\n  beta: "),
                               HasSubstr("host beta did not come up within 3s")))
      << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHostsFailures, AnAddressToCallThatIsNotOurOwnIsAWrongOption) {
  Process job = launch_waiting({"--call-back", "192.0.2.1"});
  EXPECT_EQ(job.wait(), 2) << job.report();
  EXPECT_THAT(job.err(), HasSubstr("--call-back 192.0.2.1: this machine has no such address or interface"));
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHostsFailures, AMissingFolderNamesTheHost) {
  Process job = launch_waiting({"--wdir", "/missing"});
  EXPECT_EQ(job.wait(), 1) << job.report();
  EXPECT_THAT(job.err(), AllOf(HasSubstr("host "), HasSubstr(": /missing: No such file or directory")))
      << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHostsFailures, AMissingProgramNamesTheHost) {
  Process job = launch({"-H", list(1), "--", "no_such_program"});
  EXPECT_EQ(job.wait(), 127) << job.report();
  EXPECT_THAT(job.err(), AllOf(HasSubstr("host "), HasSubstr("no_such_program"))) << job.report();
  EXPECT_TRUE(ends_everywhere());
}

// A program may have arguments of 6 MB if the stack has no limit.
TEST_F(LauncherHostsFailures, ArgumentsThatAreTooLongForTheLinkAreAnError) {
  const std::string add_arguments = R"(
    ulimit -s unlimited; word=$(head -c 100000 /dev/zero | tr '\0' x)
    for i in $(seq 45); do set -- "$@" $word; done; exec "$0" "$@")";
  Process job(hosts().on(
      hosts().desk(), {"sh", "-c", add_arguments, built("tutti"), "run", "--ssh-port", "2222", "--ssh-args",
                       "-F " + hosts().ssh_options()[1], "-H", list(1), "--", "true"}));
  EXPECT_EQ(job.wait(), 126) << job.report();
  EXPECT_THAT(job.err(), HasSubstr("the program's arguments and variables have more than 4M bytes"))
      << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHostsFailures, AMissingLibraryNamesTheHost) {
  std::filesystem::copy_file(built("02_all_reduce"), folder_ / "program");
  Process job = launch(
      {"-H", list(1), "--", "sh", "-c",
       "echo './program: error while loading shared libraries: libfoo.so.1: cannot open' >&2; exit 127"});
  EXPECT_EQ(job.wait(), 127) << job.report();
  EXPECT_THAT(job.err(),
              HasSubstr(" has no libfoo.so.1; -x LD_LIBRARY_PATH passes on where it is found here"))
      << job.report();
}

TEST_F(LauncherHostsFailures, TuttiIsMissingOnAHost) {
  Process job = launch({"-H", list(1), "--prefix", "/missing", "--", "true"});
  EXPECT_EQ(job.wait(), 1) << job.report();
  EXPECT_THAT(job.err(), HasSubstr(" has no /missing/bin/tutti")) << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHostsFailures, ARefusedKeyIsFinal) {
  Process job(hosts().on(hosts().desk(),
                         {built("tutti"), "run", "--ssh-port", "2222", "--ssh-args",
                          "-o IdentityFile=/dev/null -o IdentitiesOnly=yes -o StrictHostKeyChecking=no "
                          "-o UserKnownHostsFile=/dev/null",
                          "-H", "alpha:1", "--", "true"}));
  EXPECT_EQ(job.wait(), 1) << job.report();
  EXPECT_THAT(job.err(), AllOf(HasSubstr("host alpha"), HasSubstr("Permission denied"))) << job.report();
}

// With this option, a rank's exit status does not end the other ranks, but a signal does. mpirun
// behaves in the same way.
TEST_F(LauncherHostsFailures, AnExitStatusNeedNotEndTheOthers) {
  Process job = launch_shell({"-H", list(1), "-mca", "orte_abort_on_non_zero_status", "0"},
                             "[ $RANK = 0 ] && exit 3; sleep 1; echo rank $RANK has ended");
  EXPECT_EQ(job.wait(), 3) << job.report();
  EXPECT_THAT(job.out(), HasSubstr("rank 1 has ended")) << job.report();
  EXPECT_THAT(job.err(), AllOf(HasSubstr("exited with status 3"), HasSubstr("; the others continue")))
      << job.report();
}

TEST_F(LauncherHostsFailures, WithRecoveryTheOthersSurviveALostHost) {
  Process job = launch_shell({"-H", list(1), "--enable-recovery"},
                             "trap 'exit 0' TERM; echo rank $RANK waits; while true; do sleep 0.1; done");
  ASSERT_TRUE(job.wait_for_output("rank 0 waits\n") && job.wait_for_output("rank 1 waits\n")) << job.report();
  kill(agent_on(1).back(), SIGKILL);
  ASSERT_TRUE(eventually([&] { return job.err().find("the others continue") != std::string::npos; }))
      << job.report();
  kill(processes_with(0, "exit 0").front(), SIGTERM);
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_TRUE(ends_everywhere());
}

}  // namespace
}  // namespace tutti::test
