#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/launch/launch.h"

namespace tutti::tools {

// A `StartCommand` says how to run a command on a host.
struct StartCommand {
  enum class Way {
    here,   // without another program, since the host is this machine
    ssh,    // ssh and its options
    other,  // a program like rsh: CMD HOST WORDS...
    srun,   // a step of a Slurm job
  };
  Way way = Way::ssh;
  std::vector<std::string> command = {};  // the program of Way::other with its first arguments
  std::vector<std::string> ssh_args = {};
  int ssh_port = 0;  // 0 means ssh's own choice
  // For Way::srun, this maps a host to the number of GPUs that the step must request there.
  std::map<std::string, int> gpus = {};

  // Returns the command that runs `words` on the host. ssh and CMD join the words and give them to
  // a shell there. So this function quotes words that the shell would change. `user` is empty if no
  // user is given.
  std::vector<std::string> words(const std::string& host, const std::string& user,
                                 const std::vector<std::string>& words) const;
  // Returns the environment for the command that `words` returns. `own` is the launcher's environment.
  Environment environment(Environment own) const;
};

// Returns the word, quoted if necessary, so that every login shell reads it as exactly this one word.
std::string shell_word(const std::string& word);

// Returns a command that a user can type to see why a command of `StartCommand::words` does not
// reach its host. It runs `true` there. Unlike the original command, it may ask for a password or
// about an unknown host key.
std::string trial_by_hand(const std::vector<std::string>& command);

// Splits a command, such as the value of --agent or --ssh-args, at blanks.
std::vector<std::string> split_words(std::string_view text);

}  // namespace tutti::tools
