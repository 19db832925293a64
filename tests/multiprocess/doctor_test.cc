// Tests `tutti doctor` on hosts that are network namespaces, each with a real sshd. All faults are
// real.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <tutti/version.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/ssh_hosts.h"

namespace tutti::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Words = std::vector<std::string>;

const std::string tutti_path = std::string(TUTTI_BIN_DIR) + "/tutti";

class Doctor : public testing::Test {
 protected:
  void make_hosts(int count, int cards = 1) {
    count_ = count;
    hosts_ = std::make_unique<SshHosts>(count, cards);
  }
  const SshHosts& hosts() const { return *hosts_; }
  bool absent() const { return !hosts_->problem().empty(); }

  // Starts `tutti doctor` on a host or on the desk. (The desk is the user's machine, which is not a
  // host of the job.)
  std::unique_ptr<Process> start(int from, const Words& words, const Process::Environment& environment = {}) {
    std::string ssh_args;
    for (const std::string& option : hosts_->ssh_options()) ssh_args += option + " ";
    Words command = {tutti_path, "doctor", "--ssh-args", ssh_args};
    command.insert(command.end(), words.begin(), words.end());
    return std::make_unique<Process>(hosts_->on(from, command), environment);
  }

  // Examines the hosts from the desk, or from one of the hosts. Checks the status, and that no
  // process is left. Returns the report.
  std::string examine(const Words& words, int status, const Process::Environment& environment = {},
                      int from = -1) {
    const auto process = start(from < 0 ? hosts_->desk() : from, words, environment);
    EXPECT_EQ(process->wait(), status) << process->report();
    for (int host = 0; host < count_; ++host) EXPECT_THAT(hosts_->pids_in(host), IsEmpty());
    return process->out();
  }

  // Runs a line of shell on a host, with the network and the mounts that a login has there.
  void run_on(int host, const std::string& line) {
    Words words = hosts_->ssh_options();
    words.insert(words.begin(), "ssh");
    words.insert(words.end(), {"-x", "-n", "-o", "BatchMode=yes", hosts_->name(host), line});
    Process process(hosts_->on(hosts_->desk(), words));
    ASSERT_EQ(process.wait(), 0) << process.report();
  }

 private:
  int count_ = 0;
  std::unique_ptr<SshHosts> hosts_;
};

TEST_F(Doctor, FindsNothingWhereNothingIsWrong) {
  make_hosts(3);
  if (absent()) GTEST_SKIP() << hosts().problem();
  const std::string report = examine({"-H", "alpha,beta,gamma"}, 0);
  EXPECT_THAT(report, HasSubstr("nothing is wrong"));
  EXPECT_THAT(report, HasSubstr("alpha  eth0       " + hosts().address(0) + "/24  1500"));
  for (const char* pair :
       {"alpha  beta ", "beta   alpha", "alpha  gamma", "gamma  alpha", "beta   gamma", "gamma  beta "}) {
    EXPECT_THAT(report, ContainsRegex(std::string(pair) +
                                      "  eth0 -> eth0  10\\.203\\.0\\.[123] .*[um]s .*b/s +1500"));
  }
}

TEST_F(Doctor, TakesTheOptionsOfAJob) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  Process process(hosts().on(hosts().desk(),
                             {tutti_path, "run", "--doctor", "--ssh-args", "-F " + hosts().ssh_options()[1],
                              "--ssh-port", "2222", "-n", "4", "-host", "alpha:2,beta:2", "./program"}));
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_THAT(process.out(), HasSubstr("nothing is wrong"));
}

// Makes `to` drop the first packet of each connection from `from` to `ports`. Returns false if the kernel has
// no firewall.
bool close_direction(const SshHosts& hosts, int from, int to, const std::string& ports) {
  const std::string rules =
      "nft add table ip doctor && "
      "nft 'add chain ip doctor in { type filter hook input priority 0; }' && "
      "nft 'add rule ip doctor in ip saddr " +
      hosts.address(from) + " tcp dport " + ports + " tcp flags & (syn | ack) == syn drop'";
  Process process(hosts.on(to, {"sh", "-c", rules}));
  return process.wait() == 0;
}

TEST_F(Doctor, NamesAPortThatAFirewallClosesInOneDirection) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  if (!close_direction(hosts(), 0, 1, "20000-20010")) GTEST_SKIP() << "no firewall: nft does not work here";
  const std::string report = examine({"-H", "alpha,beta"}, 1, {{"TUTTI_PORT_RANGE", "20000-20010"}});
  EXPECT_THAT(report, HasSubstr("1 problem:"));
  EXPECT_THAT(report,
              HasSubstr("alpha cannot connect to beta at " + hosts().address(1) +
                        " port 20000 (Connection timed out), but beta can connect to alpha: a firewall"));
  EXPECT_THAT(report, HasSubstr("iptables -I INPUT -p tcp -s " + hosts().address(0) +
                                " --dport 20000:20010 -j ACCEPT on beta"));
}

// The host beta drops all packets of alpha, also the answers to its own connections.
TEST_F(Doctor, NamesRulesThatOpenBothDirections) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  const auto run_rule = [this](int host, const std::string& rule) {
    Process process(hosts().on(host, {"sh", "-c", rule}));
    return process.wait() == 0;
  };
  if (!run_rule(1, "iptables -A INPUT -p tcp -s " + hosts().address(0) + " -j DROP"))
    GTEST_SKIP() << "no firewall: iptables does not work here";
  const Process::Environment environment = {{"TUTTI_PORT_RANGE", "20000-20010"}};
  const std::string report = examine({"-H", "alpha,beta"}, 1, environment);
  EXPECT_THAT(report, AllOf(HasSubstr("1 problem:"), HasSubstr("in neither direction")));
  const std::regex advice("(iptables -I [^,]*(?:,[^ ,]+)* -j ACCEPT) on (alpha|beta)");
  int rules = 0;
  for (std::sregex_iterator found(report.begin(), report.end(), advice), end; found != end; ++found, ++rules)
    EXPECT_TRUE(run_rule((*found)[2] == "alpha" ? 0 : 1, (*found)[1])) << (*found)[1];
  EXPECT_EQ(rules, 2) << report;
  EXPECT_THAT(examine({"-H", "alpha,beta"}, 0, environment), HasSubstr("nothing is wrong"));
}

TEST_F(Doctor, NamesAWrongInterface) {
  make_hosts(2, 2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  run_on(1, "ip address flush dev eth1 && ip address add 10.250.0.2/24 dev eth1");
  const std::string report = examine({"-H", "alpha,beta"}, 1, {{"TUTTI_SOCKET_IFNAME", "eth1"}});
  EXPECT_THAT(report, AllOf(HasSubstr("1 problem:"), HasSubstr("wrong interface"),
                            HasSubstr("beta's eth1 (10.250.0.2) by alpha"),
                            HasSubstr("to fix it: TUTTI_SOCKET_IFNAME=eth0\n")));
  EXPECT_THAT(examine({"-H", "alpha,beta"}, 0, {{"TUTTI_SOCKET_IFNAME", "eth0"}}),
              HasSubstr("nothing is wrong"));
}

TEST_F(Doctor, NamesDifferentMtus) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  run_on(1, "ip link set dev eth0 mtu 9000");
  const std::string report = examine({"-H", "alpha,beta"}, 1);
  EXPECT_THAT(report, AllOf(HasSubstr("1 problem:"), HasSubstr("MTU mismatch"),
                            HasSubstr("1500 on alpha (eth0); 9000 on beta (eth0)"),
                            HasSubstr("ip link set dev eth0 mtu 1500 on beta")));
}

// The bridge between the hosts carries packets of at most 1500 bytes, and silently drops larger
// packets.
TEST_F(Doctor, NamesASwitchThatDropsLargePackets) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  for (const int host : {0, 1}) run_on(host, "ip link set dev eth0 mtu 9000");
  const std::string report = examine({"-H", "alpha,beta"}, 1);
  EXPECT_THAT(report, HasSubstr("1 problem:"));
  EXPECT_THAT(report, HasSubstr("packets of 9000 bytes are lost, those of 1500 arrive"));
  EXPECT_THAT(report, HasSubstr("ip link set dev eth0 mtu 1500 on alpha (eth0), beta (eth0)"));
}

// Copies tutti, and changes the digest of its sources in the copy.
void make_other_build(const std::string& copy) {
  std::ostringstream content;
  content << std::ifstream(tutti_path, std::ios::binary).rdbuf();
  std::string bytes = content.str();
  const std::string digest(build());
  int changed = 0;
  for (std::size_t at = 0; (at = bytes.find(digest, at)) != bytes.npos; ++changed) {
    bytes.replace(at, digest.size(), std::string(digest.size(), '0'));
  }
  ASSERT_GT(changed, 0);
  std::ofstream(copy, std::ios::binary) << bytes;
  std::filesystem::permissions(copy, std::filesystem::perms(0755));
}

TEST_F(Doctor, NamesADifferentBuildAndExaminesTheOthers) {
  make_hosts(3);
  if (absent()) GTEST_SKIP() << hosts().problem();
  const ScratchFolder folder;
  make_other_build(folder / "tutti");
  run_on(1, "mount --bind " + folder / "tutti" + " " + tutti_path);
  const std::string report = examine({"-H", "alpha,beta,gamma"}, 1);
  EXPECT_THAT(report,
              AllOf(HasSubstr("1 problem:"), HasSubstr("host beta runs tutti"),
                    HasSubstr("(build 000000000000)"), HasSubstr("install the same build of tutti on beta")));
  EXPECT_THAT(report, ContainsRegex("alpha +gamma +eth0 -> eth0"));
}

TEST_F(Doctor, NamesAHostWithoutSshAndExaminesTheOthers) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  const std::string report = examine({"-H", "alpha,beta,desk"}, 1, {}, 0);
  EXPECT_THAT(report, AllOf(HasSubstr("1 problem:"),
                            HasSubstr("ssh: connect to host desk port 2222: Connection refused"),
                            HasSubstr("start sshd on desk"), ContainsRegex("desk +not up")));
  EXPECT_THAT(report, ContainsRegex("alpha +beta +eth0 -> eth0"));
}

// The host accepts a login, but its agent cannot connect to the launcher.
TEST_F(Doctor, NamesAHostThatCannotCallBack) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  if (!close_direction(hosts(), 1, hosts().desk(), "1024-65535"))
    GTEST_SKIP() << "no firewall: nft does not work here";
  const std::string report = examine({"-H", "alpha,beta", "--start-timeout", "5s"}, 1);
  EXPECT_THAT(report, AllOf(HasSubstr("1 problem:"), HasSubstr("host beta"), HasSubstr("called back"),
                            HasSubstr("--call-back ADDRESS")));
}

// On some hosts, another command runs in place of the probe.
TEST_F(Doctor, NamesHostsWhoseProbesFail) {
  make_hosts(3);
  if (absent()) GTEST_SKIP() << hosts().problem();
  const ScratchFolder folder;
  std::filesystem::copy(tutti_path, folder / "tutti");
  for (const int host : {1, 2}) {
    const std::string script = folder / hosts().name(host);
    std::ofstream(script) << "#!/bin/sh\n[ $1 = doctor ] || exec " << folder / "tutti"
                          << " \"$@\"\n"
                          << (host == 1 ? "echo no such luck >&2; exit 3\n" : "echo nonsense; sleep 100\n");
    std::filesystem::permissions(script, std::filesystem::perms(0755));
    run_on(host, "mount --bind " + script + " " + tutti_path);
  }
  const std::string report = examine({"-H", "alpha,beta,gamma"}, 1);
  EXPECT_THAT(report, AllOf(HasSubstr("2 problems:"),
                            HasSubstr("host beta: its probe exited with status 3: no such luck"),
                            HasSubstr("host gamma: its probe: not a message of tutti doctor")));
  EXPECT_THAT(report, ContainsRegex("alpha +0\\.1\\.0"));
}

TEST_F(Doctor, NamesTinyMemlock) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  // This lowers the limit of the ssh server, so that later logins inherit it. $PPID is the process of this
  // session, and its parent is the server.
  run_on(1, "prlimit --memlock=65536:65536 --pid $(ps -o ppid= -p $PPID)");
  const std::string report = examine({"-H", "alpha,beta"}, 1);
  EXPECT_THAT(report, AllOf(HasSubstr("1 problem:"),
                            HasSubstr("only 64K of memory may be locked (ulimit -l) on beta"),
                            HasSubstr("memlock unlimited")));
}

TEST_F(Doctor, NamesAFilterThatMatchesNothing) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  const std::string report = examine({"-H", "alpha,beta"}, 1, {{"TUTTI_SOCKET_IFNAME", "ib0"}});
  EXPECT_THAT(report, AllOf(HasSubstr("1 problem:"),
                            HasSubstr("TUTTI_SOCKET_IFNAME=ib0 chooses no interface on alpha, beta"),
                            HasSubstr("to fix it: TUTTI_SOCKET_IFNAME=eth0\n")));
}

TEST_F(Doctor, NamesHostsThatAreSeparated) {
  make_hosts(3);
  if (absent()) GTEST_SKIP() << hosts().problem();
  run_on(0, "ip route add blackhole " + hosts().address(1));
  const std::string report = examine({"-H", "alpha,beta,gamma"}, 1);
  EXPECT_THAT(report, HasSubstr("1 problem:"));
  EXPECT_THAT(report, HasSubstr("alpha and beta cannot connect to each other, in neither direction"));
  EXPECT_THAT(report, Not(HasSubstr("gamma cannot")));
}

TEST_F(Doctor, EndsByASignal) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  // The host beta does not answer ssh, so the doctor waits.
  hosts().cut(1);
  const auto process = start(hosts().desk(), {"-H", "alpha," + hosts().address(1), "--start-timeout", "5m"});
  while (hosts().pids_in(0).empty()) ASSERT_FALSE(process->wait(std::chrono::milliseconds(10)));
  process->signal(SIGINT);
  EXPECT_EQ(process->wait(), 128 + SIGINT) << process->report();
  for (int left = 500; left > 0 && !hosts().pids_in(0).empty(); --left) usleep(100'000);
  EXPECT_THAT(hosts().pids_in(0), IsEmpty());
}

TEST(DoctorAlone, ExaminesThisMachine) {
  Process process({tutti_path, "doctor"}, {{"TUTTI_SOCKET_IFNAME", "lo"}});
  const auto status = process.wait();
  EXPECT_TRUE(status == 0 || status == 1) << process.report();
  EXPECT_THAT(process.out(), HasSubstr("memlock"));
  EXPECT_THAT(process.out(), ContainsRegex("lo +127\\.0\\.0\\.1/8 .*yes"));
  EXPECT_THAT(process.out(), status == 0 ? HasSubstr("nothing is wrong") : HasSubstr("to fix it"));
}

}  // namespace
}  // namespace tutti::test
