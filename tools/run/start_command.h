#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/launch/launch.h"

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
  // Of Way::srun, for hosts on which the step must ask for GPUs: how many.
  std::map<std::string, int> gpus = {};

  // Returns the words that run `words` on the host. ssh and CMD join the words and give them to a shell
  // there, so words are quoted for one level of shell where that is needed. `user` is empty if none is named.
  std::vector<std::string> words(const std::string& host, const std::string& user,
                                 const std::vector<std::string>& words) const;
  // Returns the environment in which such words must run, if the launcher's is `own`.
  Environment environment(Environment own) const;
};

// Returns the word in a form that any login shell takes as this one word.
std::string shell_word(const std::string& word);

// Returns what a user can type to see why a command of `StartCommand::words` does not reach its host. It runs
// `true` there, and unlike the command it may ask questions (a password, an unknown host key).
std::string trial_by_hand(const std::vector<std::string>& command);

// Splits a command at blanks, such as the value of --agent or --ssh-args.
std::vector<std::string> split_words(std::string_view text);

}  // namespace tutti::tools
