// Tests the hosts that the tests of `tutti run` on several hosts use.

#include "tests/support/ssh_hosts.h"

#include <cstddef>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace tutti::test {
namespace {

// Returns the command that logs in from the host `from` to the host named `to` by ssh, and runs a line of
// shell there.
std::vector<std::string> by_ssh(const SshHosts& hosts, int from, const std::string& to,
                                const std::string& line, int connect_seconds = 60) {
  std::vector<std::string> words = hosts.ssh_options();
  words.insert(words.begin(), {"ssh", "-o", "ConnectTimeout=" + std::to_string(connect_seconds)});
  words.insert(words.end(), {"-x", "-n", "-o", "BatchMode=yes", to, line});
  return hosts.on(from, words);
}

void expect_name(const SshHosts& hosts, int from, const std::string& to, const std::string& name) {
  Process process(by_ssh(hosts, from, to, "hostname"));
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_EQ(process.out(), name + "\n") << process.report();
}

TEST(HostsOverSsh, AreReachedByNameAndByAddress) {
  const SshHosts hosts(2);
  if (!hosts.problem().empty()) GTEST_SKIP() << hosts.problem();
  expect_name(hosts, hosts.desk(), "alpha", "alpha");
  expect_name(hosts, hosts.desk(), "beta", "beta");
  expect_name(hosts, hosts.desk(), hosts.address(1), "beta");
  expect_name(hosts, 0, "beta", "beta");
  expect_name(hosts, 1, "alpha", "alpha");
}

TEST(HostsOverSsh, AreReachedAllAtOnce) {
  const SshHosts hosts(8);
  if (!hosts.problem().empty()) GTEST_SKIP() << hosts.problem();
  std::deque<Process> processes;
  for (int host = 0; host < 8; ++host) {
    processes.emplace_back(by_ssh(hosts, hosts.desk(), hosts.name(host), "hostname"));
  }
  for (int host = 0; host < 8; ++host) {
    Process& process = processes[static_cast<std::size_t>(host)];
    EXPECT_EQ(process.wait(), 0) << process.report();
    EXPECT_EQ(process.out(), hosts.name(host) + "\n");
  }
}

TEST(HostsOverSsh, KeepTheFolderOfACommand) {
  const SshHosts hosts(1);
  if (!hosts.problem().empty()) GTEST_SKIP() << hosts.problem();
  const ScratchFolder folder;
  Process process(hosts.on(hosts.desk(), {"sh", "-c", "hostname && pwd"}), {}, folder.path());
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_EQ(process.out(), "desk\n" + folder.path() + "\n");
}

// An established connection survives a short interruption, as on a real network. New connections
// fail during the interruption.
TEST(HostsOverSsh, CanBeCutOffAndMended) {
  const SshHosts hosts(2);
  if (!hosts.problem().empty()) GTEST_SKIP() << hosts.problem();
  Process session(by_ssh(hosts, hosts.desk(), "beta", "echo ready; sleep 1; echo done"));
  ASSERT_TRUE(session.wait_for_output("ready\n")) << session.report();

  hosts.cut(1);
  Process refused(by_ssh(hosts, hosts.desk(), "beta", "hostname", 2));
  EXPECT_EQ(refused.wait(), 255) << refused.report();
  expect_name(hosts, hosts.desk(), "alpha", "alpha");

  hosts.mend(1);
  expect_name(hosts, hosts.desk(), "beta", "beta");
  EXPECT_EQ(session.wait(), 0) << session.report();
  EXPECT_EQ(session.out(), "ready\ndone\n");
}

TEST(HostsOverSsh, LeaveNoProcess) {
  pid_t left = 0;
  {
    const SshHosts hosts(2);
    if (!hosts.problem().empty()) GTEST_SKIP() << hosts.problem();
    EXPECT_THAT(hosts.pids_in(0), testing::IsEmpty());
    Process process(by_ssh(hosts, hosts.desk(), "alpha", "sleep 1000 >/dev/null 2>&1 & echo $!"));
    ASSERT_EQ(process.wait(), 0) << process.report();
    left = std::stoi(process.out());
    EXPECT_THAT(hosts.pids_in(0), testing::ElementsAre(left));
    EXPECT_THAT(hosts.pids_in(1), testing::IsEmpty());
  }
  EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(left) + "/exe"));
}

}  // namespace
}  // namespace tutti::test
