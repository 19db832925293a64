// Tests that only the processes of a job are found and killed.
#include "tools/run/job_processes.h"

#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::tools {
namespace {

using test::Process;

// This is the exit status of a process that SIGKILL has ended.
constexpr int killed = 128 + SIGKILL;

std::string job_of_this_test() { return "job-" + std::to_string(getpid()); }

// A process belongs to its job only after it has started its program.
void await_start(Process& process) { ASSERT_TRUE(process.wait_for_output("ready\n")) << process.report(); }

TEST(JobProcesses, RanksEnd) {
  const std::string job = job_of_this_test();
  const std::vector<std::string> wait = {"sh", "-c", "echo ready; exec sleep 1000"};
  Process rank(wait, {{"TUTTI_JOB_ID", job}});
  Process stopped(wait, {{"TUTTI_JOB_ID", job}});
  Process other(wait, {{"TUTTI_JOB_ID", job + "0"}});
  for (Process* process : {&rank, &stopped, &other}) await_start(*process);
  stopped.signal(SIGSTOP);
  EXPECT_TRUE(end_processes_of(job));
  EXPECT_EQ(rank.wait(), killed);
  EXPECT_EQ(stopped.wait(), killed);
  EXPECT_EQ(other.wait(std::chrono::milliseconds(0)), std::nullopt);
}

TEST(JobProcesses, AgentsEnd) {
  const std::string job = job_of_this_test();
  const test::ScratchFolder folder;
  std::ofstream(folder / "agent") << "echo ready; while :; do sleep 0.1; done\n";
  std::ofstream(folder / "ssh") << "echo ready; while :; do sleep 0.1; done\n";
  Process agent({"sh", "agent", "--call", "127.0.0.1:1", "--job", job, "--host", "1"}, {}, folder.path());
  Process other({"sh", "agent", "--job", job + "0"}, {}, folder.path());
  Process way({"sh", "ssh", "beta", "tutti", "agent", "--job", job}, {}, folder.path());
  for (Process* process : {&agent, &other, &way}) await_start(*process);
  EXPECT_TRUE(end_processes_of(job));
  EXPECT_EQ(agent.wait(), killed);
  EXPECT_EQ(other.wait(std::chrono::milliseconds(0)), std::nullopt);
  EXPECT_EQ(way.wait(std::chrono::milliseconds(0)), std::nullopt);
}

}  // namespace
}  // namespace tutti::tools
