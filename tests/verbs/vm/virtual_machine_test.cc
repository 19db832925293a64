// Tests the virtual machine in which RDMA is tested: what its command sees, and that no machine is left
// behind.
#include "tests/verbs/vm/virtual_machine.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class VirtualMachineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!VirtualMachine::problem().empty()) GTEST_SKIP() << VirtualMachine::problem();
  }
};

std::vector<std::string> shell(const std::string& script) { return {"bash", "-c", script}; }

// Returns whether a process runs. A process that has ended but was not reaped yet does not run.
bool runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  file >> number >> name >> state;
  return !state.empty() && state != "Z" && state != "X";
}

bool ends_soon(pid_t pid) {
  const auto end = std::chrono::steady_clock::now() + 1min;
  while (runs(pid) && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(10ms);
  return !runs(pid);
}

// Returns the QEMU that shares `folder`.
pid_t qemu_of(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string command;
    std::getline(std::ifstream(entry.path() / "cmdline"), command);
    const bool is_qemu = command.starts_with("qemu-system");
    if (is_qemu && command.find("path=" + folder + ",") != std::string::npos) {
      return std::stoi(entry.path().filename().string());
    }
  }
  return 0;
}

TEST_F(VirtualMachineTest, RunsACommandOnTheFilesOfTheHost) {
  const ScratchFolder host;
  std::ofstream(host / "file") << "old";
  VirtualMachineOptions options;
  options.folder = host.path();
  options.environment = {{"WORD", "it's"}};
  VirtualMachine machine(shell("cat file; echo new >file; cat file; echo $WORD; echo here >$shared/there; ls "
                               "/sys/class/infiniband >&2; exit 3"),
                         options);
  ASSERT_EQ(machine.wait(10min), 3) << machine.report();
  EXPECT_EQ(machine.out(), "oldnew\nit's\n");
  EXPECT_EQ(machine.err(), "rxe0\nrxe1\n");
  std::string word;
  std::ifstream(host / "file") >> word;
  EXPECT_EQ(word, "old");  // changes to the host's files are lost
  std::ifstream(machine.shared() + "/there") >> word;
  EXPECT_EQ(word, "here");
}

TEST_F(VirtualMachineTest, HasTheDevicesAndModulesThatATestAsksFor) {
  VirtualMachineOptions options;
  options.devices = 1;
  options.mtu = 1500;
  options.modules = {"sch_netem"};
  VirtualMachine machine(shell("ls /sys/class/infiniband; cat /sys/class/net/cable0/mtu;"
                               "grep -o '^sch_netem' /proc/modules"),
                         options);
  ASSERT_EQ(machine.wait(10min), 0) << machine.report();
  EXPECT_EQ(machine.out(), "rxe0\n1500\nsch_netem\n");
}

TEST_F(VirtualMachineTest, WithoutAModuleThatExistsCannotBeMade) {
  VirtualMachineOptions options;
  options.modules = {"no_such_module"};
  EXPECT_THROW(VirtualMachine({"true"}, options), std::runtime_error);
}

TEST_F(VirtualMachineTest, ShowsItsConsoleIfItEndsBeforeItsCommand) {
  VirtualMachine machine(
      shell("echo 'the last words' >/dev/console; echo b >/proc/sysrq-trigger; sleep 1000"));
  ASSERT_EQ(machine.wait(10min), 125) << machine.report();
  EXPECT_THAT(machine.report(), HasSubstr("the last words"));
}

TEST_F(VirtualMachineTest, ThatHangsIsEnded) {
  pid_t qemu = 0;
  {
    VirtualMachine machine(shell("echo ready; sleep 1000"));
    qemu = machine.qemu();
    const auto end = std::chrono::steady_clock::now() + 10min;
    while (machine.out() != "ready\n" && std::chrono::steady_clock::now() < end) {
      ASSERT_EQ(machine.wait(100ms), std::nullopt) << machine.report();
    }
    EXPECT_TRUE(runs(qemu));
  }
  EXPECT_FALSE(runs(qemu));
}

// A test program that is killed cannot end the machine itself.
TEST_F(VirtualMachineTest, DiesWithTheTest) {
  Process test({std::string(TUTTI_BIN_DIR) + "/tests/vm", "bash", "-c", "echo $shared; sleep 1000"});
  ASSERT_TRUE(test.wait_for_output("\n", 10min)) << test.report();
  std::string folder = test.out();
  folder.pop_back();
  const pid_t qemu = qemu_of(folder);
  ASSERT_NE(qemu, 0);
  test.signal(SIGKILL);
  EXPECT_TRUE(ends_soon(qemu));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tutti::test
