#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/types.h>

#include "tests/support/process.h"
#include "tests/support/ssh_hosts.h"

namespace tutti::test {

using Words = std::vector<std::string>;

// `JobOverHosts` is the fixture of tests that start jobs on several hosts by ssh. If the hosts
// cannot be made, the test is skipped.
class JobOverHosts : public testing::Test {
 protected:
  // Makes the hosts alpha, beta and so on.
  void make_hosts(int count);
  const SshHosts& hosts() const { return *hosts_; }

  // Starts `tutti run` on the desk, which is not a host of the job.
  Process launch(const Words& words, const Process::Environment& environment = {}) const;
  // Starts `tutti run OPTIONS -- sh -c SCRIPT` on the desk.
  Process launch_shell(Words options, const std::string& script) const;

  // Returns "alpha:N,beta:N,...".
  std::string list(int slots) const;

  // Waits until no process of a job is left on any host. Fails if this takes longer than `ample`.
  testing::AssertionResult ends_everywhere() const;
  // Returns the command lines of a host's processes, except those of sshd.
  Words command_lines(int host) const;
  // Waits until a host has at least `count` processes whose command lines contain `text`. Returns
  // these processes, the oldest first. Throws std::runtime_error if this takes longer than `ample`.
  std::vector<pid_t> processes_with(int host, const std::string& text, std::size_t count = 1) const;
  // Returns the two processes of a host's agent: a parent that only waits, and the parent's child,
  // which does the work.
  std::vector<pid_t> agent_on(int host) const { return processes_with(host, "agent --job", 2); }

 private:
  int count_ = 0;
  std::unique_ptr<SshHosts> hosts_;
};

// Returns the lines of a text in ascending order.
Words sorted_lines(const std::string& text);

// Waits until `condition` holds. Returns false if `ample` passes before that.
bool eventually(const std::function<bool()>& condition);

// Returns the path of a program in the build folder.
std::string built(const std::string& name);

}  // namespace tutti::test
