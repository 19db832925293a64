// Runs jobs on two hosts that are network namespaces. Each host has a Soft-RoCE device of its own: ranks
// cannot open the other host's device. These tests change devices and links, so they run in the virtual
// machine only.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/network_hosts.h"
#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {
namespace {

using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using Words = std::vector<std::string>;

std::string program(const std::string& name) { return std::string(TUTTI_BIN_DIR) + "/" + name; }
std::string device(int host) { return "rxe" + std::to_string(host); }

std::string output_of(const Words& command) {
  Process process(command);
  EXPECT_EQ(process.wait(), 0) << process.report();
  return process.out();
}
void run(const Words& command) { output_of(command); }

// Returns how many packets a device has sent.
std::uint64_t packets(const std::string& device) {
  std::uint64_t count = 0;
  std::ifstream("/sys/class/infiniband/" + device + "/ports/1/hw_counters/sent_pkts") >> count;
  return count;
}

// Returns the number after the word `name` in the output of `rdma resource show` for a device.
int resources(const std::string& device, const std::string& name) {
  std::istringstream line(output_of({"rdma", "resource", "show", device}));
  for (std::string word; line >> word;) {
    int count = 0;
    if (word == name && line >> count) return count;
  }
  ADD_FAILURE() << "rdma names no " << name;
  return -1;
}

// Returns a command that runs `command` with access to the RDMA devices in `own` only. In a mount namespace,
// it covers the files of the other devices with /dev/null.
Words with_devices(const Words& own, const Words& command) {
  std::string script;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband_verbs")) {
    std::string name;
    if (!(std::ifstream(entry.path() / "ibdev") >> name)) continue;
    if (std::ranges::find(own, name) != own.end()) continue;
    script += "mount --bind /dev/null /dev/infiniband/" + entry.path().filename().string() + " && ";
  }
  Words words = {"unshare", "--mount", "bash", "-c", script + "exec \"$@\"", "bash"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// A device gets its addresses a moment after its link is up.
void wait_for_address(const std::string& device) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const std::string port = "/sys/class/infiniband/" + device + "/ports/1/";
  while (std::chrono::steady_clock::now() < end) {
    std::string state, gid;
    std::getline(std::ifstream(port + "state"), state);
    std::getline(std::ifstream(port + "gids/1"), gid);
    if (state.find("ACTIVE") != state.npos && gid.find("ffff:0a07") != gid.npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ADD_FAILURE() << device << " has no address";
}

class VerbsJobs : public testing::Test {
 protected:
  static void SetUpTestSuite() { network_ = std::make_unique<NetworkHosts>(2); }
  static void TearDownTestSuite() { network_.reset(); }
  void SetUp() override {
    ASSERT_EQ(network_->problem(), "");
    for (int host = 0; host < 2; ++host) before_[host] = packets(device(host));
  }
  // Returns the devices of a host.
  virtual Words devices(int host) const { return {device(host)}; }
  void TearDown() override { expect_nothing_is_left(); }
  // After a job, nothing is left except the one queue pair that the kernel itself has for each device.
  void expect_nothing_is_left() {
    ranks_.clear();
    for (int host = 0; host < 2; ++host) {
      for (const std::string& each : devices(host)) {
        EXPECT_EQ(resources(each, "qp"), 1) << each;
        EXPECT_EQ(resources(each, "mr"), 0) << each;
      }
    }
  }

  // Starts the ranks of a job. `hosts[rank]` is the host of a rank.
  void start(const std::vector<int>& hosts, const Words& command, const Process::Environment& more = {}) {
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      Process::Environment environment = {
          {"TUTTI_RANK", std::to_string(rank)},
          {"TUTTI_WORLD_SIZE", std::to_string(hosts.size())},
          {"TUTTI_INIT_METHOD", "tcp://" + network_->address(hosts[0]) + ":29620"}};
      environment.insert(more.begin(), more.end());
      ranks_.emplace_back(network_->on(hosts[rank], with_devices(devices(hosts[rank]), command)),
                          environment);
    }
  }
  void expect_success() {
    for (Process& rank : ranks_) EXPECT_EQ(rank.wait(std::chrono::minutes(10)), 0) << rank.report();
  }
  // Waits until all ranks of a `fault_rank` job are ready.
  void wait_until_ready() {
    for (Process& rank : ranks_)
      ASSERT_TRUE(rank.wait_for_output("ready", std::chrono::minutes(5))) << rank.report();
  }
  // Waits until a rank of a `fault_rank` job fails. Returns its report of the failure.
  std::string failure(std::size_t rank) {
    EXPECT_TRUE(ranks_[rank].wait_for_output("\nfailed ", std::chrono::minutes(5))) << ranks_[rank].report();
    const std::string out = ranks_[rank].out();
    return out.substr(std::min(out.find("failed "), out.size()));
  }
  // Returns what `tutti info` prints on a host.
  std::string info(int host, const Process::Environment& environment = {}) {
    Process process(network_->on(host, with_devices(devices(host), {program("tutti"), "info"})), environment);
    EXPECT_EQ(process.wait(), 0) << process.report();
    return process.out();
  }
  std::uint64_t sent(int host) const { return packets(device(host)) - before_[host]; }

  static inline std::unique_ptr<NetworkHosts> network_;
  std::deque<Process> ranks_;
  std::uint64_t before_[2] = {};
};

TEST_F(VerbsJobs, TrainOnTwoHosts) {
  start({0, 1}, {program("05_train_digits")}, {{"TUTTI_TRANSPORTS", "verbs"}});
  expect_success();
  EXPECT_THAT(ranks_[0].out(), HasSubstr("all 2 ranks hold bitwise equal weights"));
  EXPECT_GT(sent(0), 1000u);
  EXPECT_GT(sent(1), 1000u);
}

// No variable names a transport, so the ranks choose it themselves.
TEST_F(VerbsJobs, UseVerbsBetweenHosts) {
  start({0, 1}, {program("02_all_reduce")});
  expect_success();
  EXPECT_GT(sent(0), 0u);
  EXPECT_GT(sent(1), 0u);
  EXPECT_THAT(info(1), HasSubstr("can run, with rxe1 port 1, RoCEv2, IPv4 10.7.0.2"));
}

TEST_F(VerbsJobs, UseSharedMemoryWithinAHost) {
  start({0, 0}, {program("02_all_reduce")});
  expect_success();
  EXPECT_EQ(sent(0), 0u);
}

// Only one of the two ranks has lost its device, but both must choose the same transport.
TEST_F(VerbsJobs, UseTcpIfAHostHasNoDevice) {
  run({"rdma", "link", "del", "rxe1"});
  start({0, 1}, {program("02_all_reduce")});
  expect_success();
  EXPECT_EQ(sent(0), 0u);
  EXPECT_THAT(info(1), HasSubstr("cannot run: no InfiniBand or RoCE device can be used"));
  run({"rdma", "link", "add", "rxe1", "type", "rxe", "netdev", "cable1"});
  wait_for_address("rxe1");
}

TEST_F(VerbsJobs, UseTcpIfAPortIsDown) {
  run({"ip", "link", "set", "cable1", "down"});
  start({0, 1}, {program("02_all_reduce")});
  expect_success();
  EXPECT_THAT(info(1), HasSubstr("rxe1 port 1: the port is down"));
  run({"ip", "link", "set", "cable1", "up"});
  wait_for_address("rxe0");
  wait_for_address("rxe1");
}

TEST_F(VerbsJobs, UseTcpIfPayloadsMustBeEncrypted) {
  start({0, 1}, {program("02_all_reduce")}, {{"TUTTI_TLS", "1"}, {"TUTTI_TOKEN", "a token of many letters"}});
  expect_success();
  EXPECT_EQ(sent(0), 0u);
  EXPECT_EQ(sent(1), 0u);
  EXPECT_THAT(info(0, {{"TUTTI_TLS", "1"}}), HasSubstr("would not be encrypted"));
}

// Gives each host a wrong hardware address for the other ("replace"), or takes it away ("del").
void set_neighbours(const std::string& verb) {
  run({"ip", "neigh", verb, "10.7.0.2", "lladdr", "02:00:00:00:07:99", "nud", "permanent", "dev", "cable0"});
  run({"ip", "neigh", verb, "10.7.0.1", "lladdr", "02:00:00:00:07:99", "nud", "permanent", "dev", "cable1"});
}

// Both devices work, but their packets do not arrive.
TEST_F(VerbsJobs, UseTcpIfPacketsVanish) {
  set_neighbours("replace");
  start({0, 1}, {program("02_all_reduce")}, {{"TUTTI_LOG_LEVEL", "info"}, {"TUTTI_IB_GID_INDEX", "1"}});
  expect_success();
  EXPECT_THAT(ranks_[0].err() + ranks_[1].err(), HasSubstr("verbs is not used with rank"));
  set_neighbours("del");
}

// Returns the words as one line, each quoted for a shell.
std::string quoted(const Words& words) {
  std::string text;
  for (std::string word : words) {
    for (std::size_t at = 0; (at = word.find('\'', at)) != word.npos; at += 4) word.replace(at, 1, "'\\''");
    text += "'" + word + "' ";
  }
  return text;
}

// The doctor reaches the hosts by the names alpha and beta, with a command of its own in place of ssh.
TEST_F(VerbsJobs, AreForeseenByTheDoctor) {
  const ScratchFolder folder;
  const std::string reach = folder / "reach";
  std::ofstream script(reach);
  script << "#!/bin/bash\nhost=$1\nshift\ncase $host in\n";
  for (int host = 0; host < 2; ++host) {
    script << (host == 0 ? "alpha" : "beta") << ") exec "
           << quoted(network_->on(host, with_devices(devices(host), {"sh", "-c"}))) << "\"$*\" ;;\n";
  }
  script << "esac\n";
  script.close();
  std::filesystem::permissions(reach, std::filesystem::perms::owner_all);
  const auto examine = [&] {
    Process doctor(network_->on(0, {program("tutti"), "doctor", "-H", "alpha,beta", "--agent", reach,
                                    "--call-back", network_->address(0)}),
                   {{"TUTTI_IB_GID_INDEX", "1"}});
    EXPECT_TRUE(doctor.wait(std::chrono::minutes(10))) << doctor.report();
    return doctor.report();
  };
  EXPECT_THAT(examine(), HasSubstr("note: messages pass between the RDMA devices of alpha, beta"));
  EXPECT_GT(sent(0), 0u);
  set_neighbours("replace");
  EXPECT_THAT(examine(),
              ContainsRegex("no messages pass between the RDMA devices of alpha .rxe0 port 1, .*the "
                            "peer is awake"));
  set_neighbours("del");
}

// Returns how often a test repeats a failure whose moment is random: `often`, or 20 times if all tests run.
int rounds(int often) { return std::getenv("TEST_ALL") != nullptr ? 20 : often; }

TEST_F(VerbsJobs, FailOnAllRanksIfOneIsKilled) {
  for (int left = rounds(3); left > 0; --left) {
    start({0, 1, 0}, {program("tests/fault_rank"), "loop", "all_reduce", "10000"},
          {{"TUTTI_TRANSPORTS", "verbs"}});
    wait_until_ready();
    ranks_[1].signal(SIGKILL);
    EXPECT_THAT(failure(0), HasSubstr(" peer_lost "));
    EXPECT_THAT(failure(2), HasSubstr(" peer_lost "));
    expect_nothing_is_left();
  }
}

// Both ranks are alive and still reach each other over TCP, so neither looks dead. To end the operation on
// both, the control plane must give up one of them.
TEST_F(VerbsJobs, FailOnAllRanksIfTheLinkBreaks) {
  for (int left = rounds(1); left > 0; --left) {
    start({0, 1, 0}, {program("tests/fault_rank"), "loop", "all_reduce", "10000"},
          {{"TUTTI_TRANSPORTS", "verbs"}});
    wait_until_ready();
    run({"ip", "link", "set", "cable1", "down"});
    int lost = 0;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::string text = failure(rank);
      EXPECT_THAT(text, AnyOf(HasSubstr(" peer_lost "), HasSubstr("was given up")));
      if (text.find(" peer_lost ") != text.npos) ++lost;
    }
    EXPECT_GE(lost, 1);
    expect_nothing_is_left();
    run({"ip", "link", "set", "cable1", "up"});
    wait_for_address("rxe0");
    wait_for_address("rxe1");
  }
}

// Root may lock any amount of memory, so the ranks run as another user.
TEST_F(VerbsJobs, WorkWithLittleLockedMemoryOrNameTheLimit) {
  const std::string command =
      "ulimit -l 64; exec setpriv --reuid=65534 --regid=65534 --clear-groups " + program("02_all_reduce");
  start({0, 1}, {"bash", "-c", command}, {{"TUTTI_TRANSPORTS", "verbs"}});
  for (Process& rank : ranks_) {
    const std::optional<int> status = rank.wait(std::chrono::minutes(5));
    ASSERT_TRUE(status) << rank.report();
    if (status == 0) continue;
    EXPECT_THAT(rank.err(), HasSubstr("the limit of locked memory is 64")) << rank.report();
  }
}

// Each host has a second device. The second devices, rxe2 and rxe3, are on the two ends of a second cable.
class VerbsRailJobs : public VerbsJobs {
 protected:
  static void SetUpTestSuite() {
    VerbsJobs::SetUpTestSuite();
    run({"ip", "link", "add", "cable2", "mtu", "4200", "type", "veth", "peer", "name", "cable3", "mtu",
         "4200"});
    for (const std::string end : {"2", "3"}) {
      std::ofstream("/proc/sys/net/ipv4/conf/cable" + end + "/accept_local") << "1";
      run({"ip", "addr", "add", "10.7.1." + end + "/24", "dev", "cable" + end});
      run({"ip", "link", "set", "cable" + end, "up"});
    }
    for (const std::string end : {"2", "3"}) {
      run({"rdma", "link", "add", "rxe" + end, "type", "rxe", "netdev", "cable" + end});
      wait_for_address("rxe" + end);
    }
  }
  static void TearDownTestSuite() {
    run({"rdma", "link", "del", "rxe2"});
    run({"rdma", "link", "del", "rxe3"});
    run({"ip", "link", "del", "cable2"});
    VerbsJobs::TearDownTestSuite();
  }
  Words devices(int host) const override { return {device(host), device(host + 2)}; }
};

TEST_F(VerbsRailJobs, ShareThePayload) {
  const std::uint64_t first = packets("rxe0"), second = packets("rxe2");
  start({0, 1}, {program("tests/rail_rank"), "1"});
  expect_success();
  const std::uint64_t over_first = packets("rxe0") - first, over_second = packets("rxe2") - second;
  const std::uint64_t all = over_first + over_second;
  EXPECT_GE(all, (std::uint64_t{64} << 20) / 4096);
  EXPECT_GE(over_first, all * 4 / 10);
  EXPECT_GE(over_second, all * 4 / 10);
}

TEST_F(VerbsRailJobs, GoOnWithoutARail) {
  for (const char* const cable : {"cable0", "cable2"}) {
    ranks_.clear();
    start({0, 1}, {program("tests/rail_rank"), "4"});
    for (Process& rank : ranks_)
      ASSERT_TRUE(rank.wait_for_output("moved 0", std::chrono::minutes(5))) << rank.report();
    run({"ip", "link", "set", cable, "down"});
    expect_success();
    EXPECT_THAT(ranks_[0].err(), HasSubstr("is left: ")) << cable;
    run({"ip", "link", "set", cable, "up"});
    for (const char* const each : {"rxe0", "rxe1", "rxe2", "rxe3"}) wait_for_address(each);
  }
}

TEST_F(VerbsRailJobs, TrainWithoutARail) {
  start({0, 1}, {program("05_train_digits")});
  ASSERT_TRUE(ranks_[0].wait_for_output("loss", std::chrono::minutes(5))) << ranks_[0].report();
  run({"ip", "link", "set", "cable0", "down"});
  expect_success();
  EXPECT_THAT(ranks_[0].out(), HasSubstr("all 2 ranks hold bitwise equal weights"));
  run({"ip", "link", "set", "cable0", "up"});
  for (const char* const each : {"rxe0", "rxe1", "rxe2", "rxe3"}) wait_for_address(each);
}

}  // namespace
}  // namespace tutti::test
