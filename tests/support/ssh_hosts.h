#pragma once

#include <deque>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/support/network_hosts.h"
#include "tests/support/process.h"
#include "tests/support/scratch_folder.h"

namespace tutti::test {

// `SshHosts` are `NetworkHosts` with the names alpha, beta, gamma and so on. A real sshd listens on
// port 2222 of each host. One more host, the desk, has no sshd. It is for launchers that are not on
// a host of the job. All hosts share the file system and the process ids, so a test may signal a
// process on any host. Each host has its own host name, an empty /run, and an /etc/hosts that names
// all hosts. The home folder of a login is empty, so that this machine's login scripts have no
// effect. The destructor ends all processes on the hosts.
class SshHosts {
 public:
  // `count` is 8 at most. The name of a host stands for the address of its first card. Throws
  // std::runtime_error if an sshd does not start.
  explicit SshHosts(int count, int cards = 1);

  // Returns the reason why there are no hosts, or an empty text if there are hosts. The hosts need
  // root, `ip`, `sshd` and `ssh`.
  const std::string& problem() const { return problem_; }
  int desk() const { return count_; }
  std::string name(int host) const;
  std::string address(int host) const { return network_.address(host); }

  // Returns the command that runs `command` on `host` or on the desk, without ssh.
  std::vector<std::string> on(int host, std::vector<std::string> command) const;
  // Returns the options with which `ssh` reaches the hosts.
  std::vector<std::string> ssh_options() const { return {"-F", folder_ / "ssh_config", "-p", "2222"}; }
  // Starts `tutti run` on `host` or on the desk, with `ssh_options()` for its `ssh`. `words` are
  // further arguments of `tutti run`.
  Process launch(int host, const std::vector<std::string>& words,
                 const Process::Environment& environment = {}) const;

  // Returns the processes of a host, except those of sshd.
  std::vector<pid_t> pids_in(int host) const;
  // These call the functions of the same names in `NetworkHosts`.
  void cut(int host) const { network_.cut(host); }
  void mend(int host) const { network_.mend(host); }

 private:
  void write_files() const;
  void start_servers();

  int count_;
  std::string problem_;
  ScratchFolder folder_;
  NetworkHosts network_;
  std::deque<Process> servers_;
};

}  // namespace tutti::test
