#include "tests/multiprocess/job_over_hosts.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace tutti::test {
namespace {

std::string command_line(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  std::string words(std::istreambuf_iterator<char>(file), {});
  std::ranges::replace(words, '\0', ' ');
  return words;
}

}  // namespace

void JobOverHosts::make_hosts(int count) {
  count_ = count;
  hosts_ = std::make_unique<SshHosts>(count);
  if (!hosts_->problem().empty()) GTEST_SKIP() << hosts_->problem();
}

Process JobOverHosts::launch(const Words& words, const Process::Environment& environment) const {
  return hosts_->launch(hosts_->desk(), words, environment);
}

Process JobOverHosts::launch_shell(Words options, const std::string& script) const {
  options.insert(options.end(), {"--", "sh", "-c", script});
  return launch(options);
}

std::string JobOverHosts::list(int slots) const {
  std::string text;
  for (int host = 0; host < count_; ++host) {
    text += (host > 0 ? "," : "") + hosts_->name(host) + ":" + std::to_string(slots);
  }
  return text;
}

testing::AssertionResult JobOverHosts::ends_everywhere() const {
  std::string left;
  const bool ended = eventually([&] {
    left.clear();
    for (int host = 0; host < count_; ++host) {
      for (const std::string& line : command_lines(host)) left += hosts_->name(host) + ": " + line + "\n";
    }
    return left.empty();
  });
  return ended ? testing::AssertionSuccess() : testing::AssertionFailure() << "left:\n" << left;
}

Words JobOverHosts::command_lines(int host) const {
  Words lines;
  for (const pid_t pid : hosts_->pids_in(host)) lines.push_back(command_line(pid));
  return lines;
}

std::vector<pid_t> JobOverHosts::processes_with(int host, const std::string& text, std::size_t count) const {
  std::vector<pid_t> found;
  const bool there_are = eventually([&] {
    found = hosts_->pids_in(host);
    std::erase_if(found, [&](pid_t pid) { return command_line(pid).find(text) == std::string::npos; });
    return found.size() >= count;
  });
  if (!there_are) throw std::runtime_error("no process with " + text + " on " + hosts_->name(host));
  std::ranges::sort(found);
  return found;
}

Words sorted_lines(const std::string& text) {
  Words lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

bool eventually(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + ample;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

std::string built(const std::string& name) { return std::string(TUTTI_BIN_DIR) + "/" + name; }

}  // namespace tutti::test
