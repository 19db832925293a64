#include "tools/run/start_command.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tools/run/slurm_job.h"

namespace tutti::tools {
namespace {

// `exec` makes the command replace the shell on the host, so that no shell waits there during the
// job.
const std::string replace_shell = "exec";
// Without these options, ssh would forward X11, read the launcher's input, and ask questions that
// no one can answer.
const std::vector<std::string> unattended = {"-x", "-n", "-o", "BatchMode=yes"};
// The step shares the job's processors and memory with other steps. Its only task is the agent. The
// agent may run on every processor, needs no MPI, and passes its environment on to the ranks.
const std::vector<std::string> agent_step = {"srun",       "--overlap",       "--nodes=1",   "--ntasks=1",
                                             "--mpi=none", "--cpu-bind=none", "--export=ALL"};

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

}  // namespace

std::string shell_word(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@+:,./-_=";
  // A word that begins with `=` is quoted, since some shells expand it.
  if (!word.empty() && word.front() != '=' && word.find_first_not_of(plain) == word.npos) return word;
  std::string quoted = "'";
  for (const char character : word) {
    if (character == '\'') {
      quoted += "'\\''";
    } else {
      quoted += character;
    }
  }
  return quoted + "'";
}

std::vector<std::string> StartCommand::words(const std::string& host, const std::string& user,
                                             const std::vector<std::string>& words) const {
  std::vector<std::string> result;
  switch (way) {
    case Way::here:
      return words;
    case Way::srun:
      result = agent_step;
      result.push_back("--nodelist=" + host);
      if (const auto found = gpus.find(host); found != gpus.end()) {
        result.push_back("--gres=gpu:" + std::to_string(found->second));
      }
      append(result, words);
      return result;
    case Way::ssh:
      result = {"ssh"};
      append(result, unattended);
      if (ssh_port != 0) append(result, {"-p", std::to_string(ssh_port)});
      append(result, ssh_args);
      break;
    case Way::other:
      result = command;
      break;
  }
  result.push_back(user.empty() ? host : user + "@" + host);
  result.push_back(replace_shell);
  std::ranges::transform(words, std::back_inserter(result), shell_word);
  return result;
}

Environment StartCommand::environment(Environment own) const {
  return way == Way::srun ? without_srun_options(std::move(own)) : own;
}

std::string trial_by_hand(const std::vector<std::string>& command) {
  std::vector<std::string> words(command.begin(), std::ranges::find(command, replace_shell));
  const auto dropped = std::search(words.begin(), words.end(), unattended.begin(), unattended.end());
  if (dropped != words.end()) words.erase(dropped, dropped + std::ssize(unattended));
  std::string text;
  for (const std::string& word : words) text += shell_word(word) + " ";
  return text + "true";
}

std::vector<std::string> split_words(std::string_view text) {
  constexpr std::string_view separators = " \t\r\n";
  std::vector<std::string> words;
  for (std::size_t begin = text.find_first_not_of(separators); begin != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(separators, end);
  }
  return words;
}

}  // namespace tutti::tools
