// Tests the conclusions of `tutti doctor` from the results of its probes.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/doctor_hosts.h"
#include "tools/doctor/findings.h"
#include "tools/doctor/start_advice.h"

namespace tutti::tools::doctor {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

auto problem(const std::string& what, const std::string& mend) {
  return AllOf(Field(&Finding::what, HasSubstr(what)), Field(&Finding::mend, HasSubstr(mend)),
               Field(&Finding::is_problem, true));
}

auto note(const std::string& what) {
  return AllOf(Field(&Finding::what, HasSubstr(what)), Field(&Finding::is_problem, false));
}

TEST(DoctorFindings, AreNoneWhereNothingIsWrong) {
  for (const std::size_t hosts : {0, 1, 2, 3, 4, 7}) EXPECT_THAT(find_all(healthy(hosts, 2)), IsEmpty());
}

TEST(DoctorFindings, NameHostsThatDidNotComeUp) {
  Examined examined = healthy(2);
  examined.hosts.push_back(
      {.name = "gamma", .problem = "host gamma: ssh exited with status 255:\n  \x1b[2J"});
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("host gamma: ssh exited with status 255:\n  \\x1b[2J", "ssh")));
}

TEST(DoctorFindings, NameLimitsOfAllHostsThatHaveThem) {
  Examined examined = healthy(3);
  for (const std::size_t host : {0, 2}) examined.hosts[host].facts->memlock = 65536;
  examined.hosts[1].facts->open_files = 256;
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("only 64K of memory may be locked (ulimit -l) on alpha, gamma", "memlock"),
                          problem("only 256 descriptors (ulimit -n) on beta", "nofile")));
}

TEST(DoctorFindings, NameALimitedMemlockWhereThereAreRdmaDevices) {
  Examined examined = healthy(2);
  for (ExaminedHost& host : examined.hosts) host.facts->rdma = {{.name = "mlx5_0", .active = true}};
  EXPECT_THAT(find_all(examined), IsEmpty());
  examined.hosts[1].facts->memlock = 8 << 20;
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("8M of memory, which is too little for its RDMA devices, may "
                                  "be locked (ulimit -l) on beta",
                                  "memlock")));
}

TEST(DoctorFindings, NoteALackOfSharedMemory) {
  Examined examined = healthy(2);
  examined.hosts[0].facts->shm_free = 1 << 20;
  examined.hosts[1].facts->shm_free = examined.hosts[1].facts->shm_bytes = 0;
  EXPECT_THAT(find_all(examined), ElementsAre(note("/dev/shm has only 1M of 1G free on alpha; PyTorch"),
                                              note("there is no /dev/shm on beta")));
}

TEST(DoctorFindings, NameClocksThatAreWrong) {
  Examined examined = healthy(3);
  examined.hosts[0].clock = ClockOffset{.ahead = -3600, .uncertainty = 0.1};
  // With this uncertainty, the true offset may be 0.
  examined.hosts[1].clock = ClockOffset{.ahead = 1.5, .uncertainty = 2};
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("the clock of alpha differs from this machine's by -3600.0 s", "set-ntp")));
}

TEST(DoctorFindings, NameAHostWithoutAFreePort) {
  Examined examined = healthy(2);
  examined.hosts[1].facts->listen_problem = "no port of 20000-20001 (TUTTI_PORT_RANGE) is free on 10.0.0.2";
  EXPECT_THAT(find_all(examined), ElementsAre(problem("on beta, no port of", "TUTTI_PORT_RANGE")));
}

TEST(DoctorFindings, NameAFirewallInOneDirection) {
  Examined examined = healthy(3);
  cut(path_of(examined, 0, 1));
  cut(path_of(examined, 2, 1), Outcome::refused);
  EXPECT_THAT(
      find_all(examined),
      ElementsAre(problem("alpha, gamma cannot connect to beta at 10.0.0.2 port 4000 (Connection",
                          "TUTTI_PORT_RANGE=20000-21000, and iptables -I INPUT -p tcp -s 10.0.0.1,10.0.0.3 "
                          "--dport 20000:21000 -j ACCEPT on beta")));
  examined.hosts[1].facts->port_range = "5000-5009";
  EXPECT_THAT(find_all(examined), ElementsAre(problem("alpha, gamma cannot connect to beta",
                                                      "iptables -I INPUT -p tcp -s 10.0.0.1,10.0.0.3 --dport "
                                                      "5000:5009 -j ACCEPT on beta")));
}

TEST(DoctorFindings, OpenAPortForTheNetworkOfManyHosts) {
  Examined examined = healthy(7);
  for (std::size_t from = 1; from < 7; ++from) cut(path_of(examined, from, 0));
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("beta, gamma, delta, host4 and 2 more cannot connect to alpha",
                                  "-s 10.0.0.0/24 --dport")));
}

TEST(DoctorFindings, NameTheHostThatNobodyReaches) {
  Examined examined = healthy(4);
  for (const std::size_t other : {0, 1, 3}) {
    cut(path_of(examined, other, 2));
    cut(path_of(examined, 2, other));
  }
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("gamma and alpha, beta, delta cannot connect to each other",
                                  "ip route get 10.0.0.3")));
}

// A firewall may drop the answers of the hosts to which its own host connects. So the rules open the ports at
// both ends of a connection, on both hosts.
TEST(DoctorFindings, OpenBothHostsIfNeitherDirectionWorks) {
  Examined examined = healthy(3);
  for (const std::size_t other : {1, 2}) {
    cut(path_of(examined, 0, other));
    cut(path_of(examined, other, 0));
  }
  EXPECT_THAT(
      find_all(examined),
      ElementsAre(problem("alpha and beta, gamma cannot connect to each other, in neither direction",
                          "TUTTI_PORT_RANGE=20000-21000, and iptables -I INPUT -p tcp -s 10.0.0.2,10.0.0.3 "
                          "-m multiport --ports 20000:21000 -j ACCEPT on alpha, and iptables -I INPUT -p tcp "
                          "-s 10.0.0.1 -m multiport --ports 20000:21000 -j ACCEPT on beta, gamma")));
  for (ExaminedHost& host : examined.hosts) host.facts->port_range = "5000-5009";
  for (const std::size_t other : {1, 2}) path_of(examined, 0, other).from.clear();
  EXPECT_THAT(find_all(examined), ElementsAre(problem("alpha and beta, gamma",
                                                      "let connections in: iptables -I INPUT -p tcp -s "
                                                      "10.0.0.2,10.0.0.3 -m multiport --ports 5000:5009 "
                                                      "-j ACCEPT on alpha, and iptables -I INPUT -p tcp "
                                                      "-s 10.0.0.0/24 -m multiport")));
}

TEST(DoctorFindings, MixNoFamiliesOfAddressesInARule) {
  Examined examined = healthy(2);
  Connection& connection = examined.connections.front();
  connection.paths.push_back(connection.paths.front());
  connection.paths.back().from = "fd00::1";
  connection.paths.back().to = "fd00::2";
  for (Path& path : connection.paths) cut(path);
  EXPECT_THAT(find_all(examined), ElementsAre(problem("alpha cannot connect to beta at 10.0.0.2",
                                                      "iptables -I INPUT -p tcp -s 10.0.0.1 --dport")));
}

TEST(DoctorFindings, NameAWrongInterfaceAndTheRightOne) {
  Examined examined = healthy(3, 2);
  for (const std::size_t from : {0, 1, 2}) {
    for (const std::size_t to : {0, 1, 2}) {
      if (from != to) cut(path_of(examined, from, to));
    }
  }
  EXPECT_THAT(find_all(examined), ElementsAre(problem("alpha's eth0 (10.0.0.1) by beta, gamma, beta's eth0",
                                                      "TUTTI_SOCKET_IFNAME=eth1")));
}

TEST(DoctorFindings, ChooseAmongInterfacesByTheirNetworkIfTheirNamesDiffer) {
  Examined examined = healthy(2, 2);
  examined.hosts[1].facts->interfaces[2].name = "ens7";
  cut(path_of(examined, 0, 1));
  cut(path_of(examined, 1, 0));
  EXPECT_THAT(find_all(examined), ElementsAre(problem("wrong interface", "TUTTI_SOCKET_IFNAME=10.1.0.0/24")));
}

TEST(DoctorFindings, ChooseAnInterfaceByItsWholeNameIfAnotherBeginsSo) {
  Examined examined = healthy(2, 2);
  examined.hosts[1].facts->interfaces[1].name = "eth10";
  cut(path_of(examined, 0, 1));
  EXPECT_THAT(find_all(examined), ElementsAre(problem("wrong interface", "TUTTI_SOCKET_IFNAME==eth1")));
}

TEST(DoctorFindings, NameAFilterThatMatchesNothing) {
  Examined examined = healthy(2);
  for (ExaminedHost& host : examined.hosts) {
    host.facts->filter = "ib0";
    host.facts->filter_variable = "NCCL_SOCKET_IFNAME";
    host.usage = {.addresses = {}, .problem = "matches nothing"};
  }
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("NCCL_SOCKET_IFNAME=ib0 chooses no interface on alpha, beta",
                                  "TUTTI_SOCKET_IFNAME=eth0")));
}

TEST(DoctorFindings, TellOfHostsWithTheSameAddresses) {
  Examined examined = healthy(2);
  examined.hosts[1].facts = examined.hosts[0].facts;
  for (Connection& connection : examined.connections) connection.paths.clear();
  EXPECT_THAT(find_all(examined), ElementsAre(note("alpha, beta have the same addresses")));
}

TEST(DoctorFindings, NameAHostWithoutANetwork) {
  Examined examined = healthy(2);
  examined.hosts[1].facts->interfaces.resize(1);
  examined.connections[0].paths.clear();
  EXPECT_THAT(find_all(examined), ElementsAre(problem("no other host can reach beta", "ip address")));
}

TEST(DoctorFindings, NameDifferentMtusOfOneNetwork) {
  Examined examined = healthy(3, 2);
  examined.hosts[2].facts->interfaces[2].mtu = 9000;
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("10.1.0.0/24 have different MTUs: 1500 on alpha (eth1), beta "
                                  "(eth1); 9000 on gamma (eth1)",
                                  "ip link set dev eth1 mtu 1500 on gamma (eth1)")));
  examined.hosts[1].facts->interfaces[2].mtu = 9000;
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("1500 on alpha", "mtu 9000 on alpha (eth1), if the switch")));
}

TEST(DoctorFindings, SayNothingOfMtusBeyondARouter) {
  Examined examined = healthy(2);
  examined.hosts[1].facts->interfaces[1] = {
      .name = "eth0", .mtu = 9000, .addresses = {{"192.168.0.2", 24, 4000}}};
  examined.hosts[1].usage.addresses = {"192.168.0.2"};
  path_of(examined, 0, 1).to = path_of(examined, 1, 0).from = "192.168.0.2";
  EXPECT_THAT(find_all(examined), IsEmpty());
}

TEST(DoctorFindings, NameLostPackets) {
  Examined examined = healthy(2);
  Path& path = path_of(examined, 0, 1);
  path.full_packet = 9000;
  path.largest_packet = 1450;
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("packets of 9000 bytes are lost, those of 1450 arrive: alpha -> beta",
                                  "ip link set dev eth0 mtu 1450 on alpha (eth0)")));
}

TEST(DoctorFindings, TellOfWhatIsSlow) {
  Examined examined = healthy(4);
  path_of(examined, 1, 3).bandwidth = 1e8;
  path_of(examined, 3, 1).round_trip_us = 900;
  EXPECT_THAT(find_all(examined),
              ElementsAre(note("little bandwidth, compared with 8.00 Gb/s elsewhere: beta -> delta 800 Mb/s"),
                          note("long round trips, compared with 50 us elsewhere: delta -> beta 900 us")));
}

TEST(DoctorFindings, TellOfDifferences) {
  Examined examined = healthy(3);
  examined.hosts[0].facts->gpus = {"H100", "H100"};
  examined.hosts[1].facts->rdma = {{.name = "mlx5_0", .active = false}};
  examined.hosts[2].facts->processor = "another processor";
  examined.hosts[2].facts->has_folder = false;
  examined.doubt = "the other hosts are reached from two addresses";
  examined.all_pairs = false;
  EXPECT_THAT(find_all(examined),
              ElementsAre(note("RDMA devices are down: beta mlx5_0"),
                          note("number of GPUs: 0 on beta, gamma; 2 on alpha"), note("number of RDMA ports"),
                          note("a processor on alpha, beta; another processor on gamma"),
                          note("the current folder does not exist on gamma"), note("from two addresses"),
                          note("with some of the others only")));
}

TEST(DoctorFindings, AreSortedAndPrintable) {
  Examined examined = healthy(2);
  const std::string evil = "\x1b]0;evil\a\n";
  HostFacts& facts = *examined.hosts[1].facts;
  facts.processor = facts.listen_problem = facts.filter = facts.filter_variable = facts.port_range = evil;
  facts.memlock = 0;
  examined.hosts[1].usage = {.addresses = {}, .problem = evil};
  cut(path_of(examined, 0, 1));
  path_of(examined, 0, 1).error = path_of(examined, 0, 1).from = path_of(examined, 0, 1).to = evil;
  bool notes = false;
  for (const Finding& finding : find_all(examined)) {
    EXPECT_THAT(finding.what + finding.mend, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\n"))));
    EXPECT_FALSE(notes && finding.is_problem);
    notes |= !finding.is_problem;
  }
  EXPECT_TRUE(notes);
}

TEST(DoctorAdvice, DependsOnWhatTheLauncherSays) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"host b runs tutti 0.1.0 (build 1), this machine 0.1.0 (build 2)", "the same build of tutti on b"},
      {"host b has no /opt/tutti: install it there, or name its folder with --prefix DIR",
       "install tutti on b"},
      {"host b: /opt/tutti: error while loading shared libraries: libfoo.so.1", "ldd"},
      {"host b: the launcher cannot be called back: 10.0.0.9:1: Connection refused", "--call-back"},
      {"host b did not come up within 20s:\n  its agent has not called back", "TUTTI_PORT_RANGE"},
      {"host b: ssh: not found in PATH or in the current folder", "install an ssh client on this machine"},
      {"host b: Permission denied (publickey)", "ssh-copy-id b"},
      {"host b: Host key verification failed.", "ssh-keyscan b"},
      {"ssh: Could not resolve hostname b: Name or service not known", "/etc/hosts"},
      {"ssh: connect to host b port 22: Connection refused", "start sshd on b"},
      {"ssh: connect to host b port 22: No route to host", "firewalls"},
      {"host b did not come up within 20s:\n  ssh is running", "ssh b true"},
      {"host b: srun exited with status 1", "ssh b true"},
  };
  for (const auto& [failure, advice] : cases)
    EXPECT_THAT(start_advice("b", failure), HasSubstr(advice)) << failure;
}

TEST(DoctorFindings, SayWhyRdmaDevicesAreNotUsed) {
  Examined examined = healthy(2);
  examined.hosts[1].facts->rdma = {{.name = "mlx5_0", .active = true}};
  examined.hosts[1].facts->no_cards = "libibverbs is missing\n";
  EXPECT_THAT(find_in_cards(examined),
              ElementsAre(note("ranks on beta would not use its RDMA devices: libibverbs is missing\\n")));
}

TEST(DoctorFindings, SayWhetherMessagesPassBetweenRdmaDevices) {
  Examined examined = healthy(3);
  for (ExaminedHost& host : examined.hosts) host.facts->cards = "mlx5_0 port 1";
  examined.cards = {{0, 1, ""}, {0, 2, ""}, {1, 2, ""}};
  examined.hosts[0].facts->no_cards = "the host has none";
  EXPECT_THAT(find_all(examined),
              ElementsAre(note("messages pass between the RDMA devices of alpha, beta, gamma")));
  examined.cards[1].failure = "none arrived\x1b";
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("between the RDMA devices of alpha (mlx5_0 port 1) and gamma (mlx5_0 port "
                                  "1), so ranks would use TCP: none arrived\\x1b",
                                  "TUTTI_IB_HCA=NAME"),
                          note("of alpha, beta, gamma")));
  examined.cards[2].failure = examined.cards[0].failure = "none arrived";
  EXPECT_THAT(find_all(examined),
              ElementsAre(problem("of 2 more pairs of hosts", "TUTTI_TRANSPORTS=shm,tcp")));
}

TEST(DoctorFindings, SayThatRdmaDevicesCannotBeTestedWithoutPorts) {
  Examined examined = healthy(3);
  const std::string lack = "tcp: no port of 5000-5001 (TUTTI_PORT_RANGE) is free on 10.0.0.1";
  examined.cards = {{0, 1, lack}, {0, 2, lack}, {1, 2, ""}};
  EXPECT_THAT(
      find_all(examined),
      ElementsAre(problem("the RDMA devices of alpha and beta, and of 1 more pair of hosts cannot be tested, "
                          "since a job of one rank on each host does not have enough ports: tcp: no port of",
                          "a wider TUTTI_PORT_RANGE"),
                  note("messages pass between the RDMA devices of beta, gamma")));
}

}  // namespace
}  // namespace tutti::tools::doctor
