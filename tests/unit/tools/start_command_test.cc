#include "tools/run/start_command.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace tutti::tools {
namespace {

using Words = std::vector<std::string>;
using Way = StartCommand::Way;

const Words agent_words = {"/opt/tutti/bin/tutti", "agent", "--call", "10.0.0.9:41873", "--host", "1"};

Words joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(StartCommand, OnThisMachineNothingIsAddedOrQuoted) {
  EXPECT_EQ(StartCommand{.way = Way::here}.words("alpha", "", {"a b", "c"}), (Words{"a b", "c"}));
}

TEST(StartCommand, SshAsksNothing) {
  EXPECT_EQ(StartCommand{}.words("beta", "", agent_words),
            joined({"ssh", "-x", "-n", "-o", "BatchMode=yes", "beta", "exec"}, agent_words));
}

TEST(StartCommand, SshTakesAPortAndOptions) {
  const StartCommand ssh{.ssh_args = {"-i", "key"}, .ssh_port = 2222};
  EXPECT_EQ(ssh.words("beta", "alice", agent_words), joined({"ssh", "-x", "-n", "-o", "BatchMode=yes", "-p",
                                                             "2222", "-i", "key", "alice@beta", "exec"},
                                                            agent_words));
}

TEST(StartCommand, IPv6HostsHaveNoBrackets) {
  const Words words =
      StartCommand{}.words("fe80::1%eth0", "alice", {"agent", "--call", "[fe80::2%eth0]:41873"});
  EXPECT_EQ(words, (Words{"ssh", "-x", "-n", "-o", "BatchMode=yes", "alice@fe80::1%eth0", "exec", "agent",
                          "--call", "'[fe80::2%eth0]:41873'"}));
}

TEST(StartCommand, AnotherProgramGetsTheHostAndTheWords) {
  const StartCommand other{.way = Way::other, .command = {"kubexec.sh", "--quick"}};
  EXPECT_EQ(other.words("alpha", "", agent_words),
            joined({"kubexec.sh", "--quick", "alpha", "exec"}, agent_words));
  EXPECT_EQ(other.words("fd00::7", "bob", {"agent"}),
            (Words{"kubexec.sh", "--quick", "bob@fd00::7", "exec", "agent"}));
}

TEST(StartCommand, SrunHasNoShell) {
  const StartCommand srun{.way = Way::srun, .gpus = {{"m4", 2}}};
  const Words step = {"srun",       "--overlap",       "--nodes=1",   "--ntasks=1",
                      "--mpi=none", "--cpu-bind=none", "--export=ALL"};
  EXPECT_EQ(srun.words("m3", "", {"/opt/my tutti", "agent"}),
            joined(step, {"--nodelist=m3", "/opt/my tutti", "agent"}));
  EXPECT_EQ(srun.words("m4", "", {"agent"}), joined(step, {"--nodelist=m4", "--gres=gpu:2", "agent"}));
}

TEST(StartCommand, SrunDoesNotTakeTheOptionsOfTheRanks) {
  const Environment environment = {{"PATH", "/bin"},
                                   {"SLURM_ARRAY_TASK_ID", "3"},
                                   {"SLURM_CONF", "/etc/slurm.conf"},
                                   {"SLURM_CPU_BIND", "cores"},
                                   {"SLURM_CPU_BIND_TYPE", "cores"},
                                   {"SLURM_CPUS_PER_TASK", "2"},
                                   {"SLURM_EXACT", "1"},
                                   {"SLURM_GPUS_PER_TASK", "1"},
                                   {"SLURM_JOB_GPUS", "0,1"},
                                   {"SLURM_JOB_ID", "7"},
                                   {"SLURM_LABELIO", "1"},
                                   {"SLURM_MEM_PER_CPU", "100"},
                                   {"SLURM_NTASKS", "4"},
                                   {"SLURM_NTASKS_PER_NODE", "2"},
                                   {"SLURM_STDOUTMODE", "x"},
                                   {"SRUN_CPUS_PER_TASK", "2"}};
  const Environment left = {{"PATH", "/bin"},
                            {"SLURM_ARRAY_TASK_ID", "3"},
                            {"SLURM_CONF", "/etc/slurm.conf"},
                            {"SLURM_CPUS_PER_TASK", "2"},
                            {"SLURM_JOB_GPUS", "0,1"},
                            {"SLURM_JOB_ID", "7"},
                            {"SLURM_NTASKS", "4"}};
  EXPECT_EQ((StartCommand{.way = Way::srun}.environment(environment)), left);
  EXPECT_EQ((StartCommand{.way = Way::ssh}.environment(environment)), environment);
}

TEST(StartCommand, WordsPassThroughOneLevelOfShell) {
  const Words words = {"printf", "<%s>", "a b", "it's", "\"quoted\"", "",    "$HOME", "*", "back\\slash", "~",
                       "a;b&&c", "`id`", "!!",  "#",    "{a,b}",      "=ls", "a\nb",  "ä"};
  const StartCommand played{.way = Way::other, .command = {TUTTI_SOURCE_DIR "/tests/support/played_rsh.sh"}};
  test::Process process(played.words("nowhere", "", words));
  EXPECT_EQ(process.wait(), 0) << process.report();
  std::string expected;
  for (std::size_t i = 2; i < words.size(); ++i) expected += "<" + words[i] + ">";
  EXPECT_EQ(process.out(), expected);
}

TEST(StartCommand, ATrialByHandMayAskQuestions) {
  const StartCommand ssh{.ssh_args = {"-i", "my key"}, .ssh_port = 2222};
  EXPECT_EQ(trial_by_hand(ssh.words("beta", "alice", agent_words)),
            "ssh -p 2222 -i 'my key' alice@beta true");
  const StartCommand other{.way = Way::other, .command = {"rsh", "-q"}};
  EXPECT_EQ(trial_by_hand(other.words("beta", "", agent_words)), "rsh -q beta true");
}

TEST(StartCommand, CommandsAreSplitAtBlanks) {
  EXPECT_EQ(split_words("  ssh -o  ConnectionAttempts=10\n"), (Words{"ssh", "-o", "ConnectionAttempts=10"}));
  EXPECT_EQ(split_words(" "), Words());
}

}  // namespace
}  // namespace tutti::tools
