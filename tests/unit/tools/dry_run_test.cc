// Tests the output of --dry-run, and the plan of ranks and hosts (tools/run/host_plan.h) that this output
// shows.
#include "tools/run/dry_run.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"
#include "tools/run/host_plan.h"

namespace tutti::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// These are names that no name service knows.
const std::vector<std::string> two_hosts = {"alpha.invalid:2,beta.invalid:1"};

RunOptions options_for(const std::vector<std::string>& hosts) {
  RunOptions options;
  options.hosts = hosts;
  options.folder = "/job";
  options.program = {"./train", "--note", "it's"};
  return options;
}

std::string report(const RunOptions& options, const Environment& environment) {
  const Result<HostPlan> plan = plan_hosts(options, environment);
  if (!plan.ok()) return plan.status().message();
  const Result<std::string> text = dry_run_report(options, *plan, environment);
  return text.ok() ? *text : text.status().message();
}

TEST(DryRun, ShowsWhatEachHostWouldRun) {
  RunOptions options = options_for(two_hosts);
  options.prefix = "/opt/tutti";
  options.call_back = "127.0.0.1";
  options.exports = {"DATA"};
  const Environment environment = {{"DATA", "/data"}, {"OTHER", "x"}, {"TUTTI_TOKEN", "5e8d"}};
  EXPECT_EQ(
      report(options, environment),
      "host alpha.invalid: ranks 0 1\n"
      "  start: ssh -x -n -o BatchMode=yes alpha.invalid exec /opt/tutti/bin/tutti agent --job JOB --host 0 "
      "--call 127.0.0.1:PORT\n"
      "  folder: /job\n"
      "  variables: DATA=/data MASTER_ADDR=(of alpha.invalid) MASTER_PORT=(of alpha.invalid) "
      "TUTTI_JOB_ID=JOB "
      "TUTTI_STORE=(of alpha.invalid) TUTTI_TOKEN=(set)\n"
      "  run: ./train --note 'it'\\''s'\n"
      "host beta.invalid: ranks 2\n"
      "  start: ssh -x -n -o BatchMode=yes beta.invalid exec /opt/tutti/bin/tutti agent --job JOB --host 1 "
      "--call 127.0.0.1:PORT\n"
      "  folder: /job\n"
      "  variables: DATA=/data MASTER_ADDR=(of alpha.invalid) MASTER_PORT=(of alpha.invalid) "
      "TUTTI_JOB_ID=JOB "
      "TUTTI_STORE=(of alpha.invalid) TUTTI_TOKEN=(set)\n"
      "  run: ./train --note 'it'\\''s'\n");
}

TEST(DryRun, ShowsRanksOfThisMachine) {
  RunOptions options = options_for({});
  options.placement.ranks = 3;
  EXPECT_THAT(report(options, {}), AllOf(HasSubstr("this machine: ranks 0 1 2\n"), Not(HasSubstr("start:")),
                                         HasSubstr(", and all others of this machine\n")));
}

TEST(DryRun, SaysThatAHostWouldBeAskedForItsSlots) {
  RunOptions options = options_for({"gamma.invalid"});
  options.call_back = "127.0.0.1";
  EXPECT_THAT(report(options, {}),
              HasSubstr("host gamma.invalid: the ranks depend on the numbers of processors"));
}

TEST(HostPlan, HostsWithoutRanksAreLeftOut) {
  RunOptions options = options_for(two_hosts);
  options.placement.ranks = 2;
  const Result<HostPlan> plan = plan_hosts(options, {});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->hosts.size(), 1u);
  EXPECT_EQ(plan->hosts.front().listed.name, "alpha.invalid");
  EXPECT_EQ(*plan->ranks, 2);
}

TEST(HostPlan, ThisMachineAloneNeedsNoHosts) {
  RunOptions options = options_for({"127.0.0.1:2"});
  const Result<HostPlan> plan = plan_hosts(options, {});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_TRUE(plan->hosts.empty());
  EXPECT_EQ(*plan->ranks, 2);
}

TEST(HostPlan, MoreRanksThanSlotsAreAnError) {
  RunOptions options = options_for(two_hosts);
  options.placement.ranks = 4;
  EXPECT_FALSE(plan_hosts(options, {}).ok());
  options.placement.oversubscribe = true;
  EXPECT_TRUE(plan_hosts(options, {}).ok());
}

TEST(HostPlan, WithoutHostsTheNumberOfRanksIsRequired) {
  const Result<HostPlan> plan = plan_hosts(options_for({}), {});
  EXPECT_THAT(plan.status().message(), HasSubstr("-n N, the number of ranks, is required"));
}

}  // namespace
}  // namespace tutti::tools
