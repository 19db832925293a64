// Runs test programs in virtual machines, over Soft-RoCE devices.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/verbs/vm/virtual_machine.h"

namespace tutti::test {
namespace {

struct Program {
  std::string name;    // in the folder of the test programs
  std::string filter;  // as in --gtest_filter
};
using GuestTests = std::vector<Program>;  // run one after the other in one machine

void PrintTo(const Program& program, std::ostream* to) { *to << program.name; }

// `./dev test` also counts the tests that ran in the machine. It reads their numbers from the file that
// TEST_SUMMARY names.
void append_summary(const std::string& from) {
  const char* const to = std::getenv("TEST_SUMMARY");
  if (to == nullptr) return;
  std::ifstream summary(from);
  std::ofstream(to, std::ios::app) << summary.rdbuf();
}

class InVirtualMachine : public testing::TestWithParam<GuestTests> {};

TEST_P(InVirtualMachine, AllTestsPass) {
  if (!VirtualMachine::problem().empty()) GTEST_SKIP() << VirtualMachine::problem();
  VirtualMachineOptions options;
  options.environment["TEST_VERBS"] = "system";
  options.modules = {"bridge"};  // joins the hosts of `NetworkHosts`
  // $shared is the folder whose files outlive the machine.
  std::vector<std::string> command = {"bash", "-c",
                                      "export TEST_SUMMARY=$shared/summary; while (($#)); do \"$1\" "
                                      "--gtest_filter=\"$2\" || exit; shift 2; done",
                                      "bash"};
  for (const Program& program : GetParam()) {
    command.push_back(std::string(TUTTI_BIN_DIR) + "/tests/" + program.name);
    command.push_back(program.filter);
  }
  VirtualMachine machine(command, options);
  ASSERT_EQ(machine.wait(std::chrono::minutes(15)), 0) << machine.report();
  append_summary(machine.shared() + "/summary");
}

// A large all_reduce of four ranks takes long, and shows little that one of two ranks does not.
INSTANTIATE_TEST_SUITE_P(Cancellation, InVirtualMachine,
                         testing::Values(GuestTests{
                             {"verbs_transport", "VerbsAttack.*:VerbsCancellation.*"},
                             {"verbs_collectives", "*-*LargeOnes*Ranks4*"},
                         }));
// Soft-RoCE does not refuse every write outside a memory window: in one of about 2,400 runs of
// MemoryWindow.PermitsNoOtherWrites, it let the write pass (docs/rdma.md).
INSTANTIATE_TEST_SUITE_P(Verbs, InVirtualMachine,
                         testing::Values(GuestTests{
                             {"verbs_provider", "Behaviour.*:MemoryWindow.*-*.PermitsNoOtherWrites"}}));
INSTANTIATE_TEST_SUITE_P(Channels, InVirtualMachine, testing::Values(GuestTests{{"conformance_verbs", "*"}}));
// A world of seven ranks takes long, and shows little that a world of eight ranks does not.
INSTANTIATE_TEST_SUITE_P(Collectives, InVirtualMachine,
                         testing::Values(GuestTests{{"conformance_collectives",
                                                     "All/Coll*verbs*:All/Communicator*verbs*-*verbs_7"}}));
INSTANTIATE_TEST_SUITE_P(Jobs, InVirtualMachine, testing::Values(GuestTests{{"verbs_jobs", "*"}}));

}  // namespace
}  // namespace tutti::test
