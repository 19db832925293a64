// Tests `tutti run` over several hosts, which are network namespaces with a real sshd each.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/ssh_hosts.h"

namespace tutti::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;

std::string example(const std::string& name) { return std::string(TUTTI_BIN_DIR) + "/" + name; }

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

// A `JobOverHosts` has a hostfile and hosts, and checks that a job leaves no process on any of them.
class LauncherHosts : public testing::Test {
 protected:
  void make_hosts(int count) {
    count_ = count;
    hosts_ = std::make_unique<SshHosts>(count);
  }
  const SshHosts& hosts() const { return *hosts_; }
  bool absent() const { return !hosts_->problem().empty(); }

  // Starts `tutti run` at the desk, which is no host of the job.
  Process launch(const Words& words, const Process::Environment& environment = {}) const {
    return hosts_->launch(hosts_->desk(), words, environment);
  }

  // Returns `-H alpha:N,beta:N,...`.
  std::string list(int slots) const {
    std::string text;
    for (int host = 0; host < count_; ++host) {
      text += (host > 0 ? "," : "") + hosts_->name(host) + ":" + std::to_string(slots);
    }
    return text;
  }

  // Returns whether no process of a job is left on any host soon.
  testing::AssertionResult ends_everywhere() const {
    const auto limit = std::chrono::steady_clock::now() + ample;
    while (true) {
      std::string left;
      for (int host = 0; host < count_; ++host) {
        for (const pid_t pid : hosts_->pids_in(host))
          left += hosts_->name(host) + ":" + std::to_string(pid) + " ";
      }
      if (left.empty()) return testing::AssertionSuccess();
      if (std::chrono::steady_clock::now() > limit) return testing::AssertionFailure() << "left: " << left;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

 private:
  int count_ = 0;
  std::unique_ptr<SshHosts> hosts_;
};

TEST_F(LauncherHosts, RanksRunOnTheHostsOfAHostfile) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  const ScratchFolder folder;
  std::ofstream(folder / "hosts") << "# two hosts\nalpha slots=1\nbeta:2\n";
  Process job = launch({"--hostfile", folder / "hosts", "--", "sh", "-c",
                        "echo $(hostname) $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE"});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_EQ(sorted_lines(job.out()), (Words{"alpha 0/3 0/1", "beta 1/3 0/2", "beta 2/3 1/2"}))
      << job.report();
  EXPECT_EQ(job.err(), "") << job.report();
  EXPECT_TRUE(ends_everywhere());
}

TEST_F(LauncherHosts, RanksMeetOnTheHostOfRankZero) {
  make_hosts(2);
  if (absent()) GTEST_SKIP() << hosts().problem();
  Process job = launch({"-H", list(2), "--", example("02_all_reduce")});
  EXPECT_EQ(job.wait(), 0) << job.report();
  EXPECT_TRUE(ends_everywhere());
}

}  // namespace
}  // namespace tutti::test
