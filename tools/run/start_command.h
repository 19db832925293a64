#pragma once

#include <string>
#include <vector>

namespace tutti::tools {

// A `StartCommand` is the way to run a command on a host.
struct StartCommand {
  enum class Way {
    here,   // without another program: the host is this machine
    ssh,    // ssh and its options
    other,  // a program like rsh: CMD HOST WORDS...
    srun,   // a step of a Slurm job
  };
  Way way = Way::ssh;
  std::vector<std::string> command = {};  // of Way::other, with its first arguments
  std::vector<std::string> ssh_args = {};
  int ssh_port = 0;  // 0: ssh's own choice

  // Returns the words that run `words` on the host. ssh and CMD join the words and give them to a shell
  // there, so words are quoted for one level of shell where that is needed.
  std::vector<std::string> words(const std::string& host, const std::string& user,
                                 const std::vector<std::string>& words) const;
};

// Splits a command at spaces, as the value of --agent and of --ssh-args.
std::vector<std::string> split_words(std::string_view text);

}  // namespace tutti::tools
