#include "tools/run/host_commands.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "rendezvous/launch/environment.h"

namespace tutti::tools {
namespace {

std::string path_of_tutti() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

}  // namespace

HostCommands::HostCommands(StartCommand way, std::string prefix)
    : way_(std::move(way)), prefix_(std::move(prefix)) {}

std::string HostCommands::path_on(const LocatedHost& host) const {
  return prefix_.empty() || host.is_here ? path_of_tutti() : prefix_ + "/bin/tutti";
}

std::vector<std::string> HostCommands::start(const LocatedHost& host, const std::string& job,
                                             std::size_t number,
                                             const std::vector<std::string>& endpoints) const {
  std::vector<std::string> words = {"agent", "--job", job, "--host", std::to_string(number)};
  for (const std::string& endpoint : endpoints) words.insert(words.end(), {"--call", endpoint});
  return run(host, std::move(words));
}

std::vector<std::string> HostCommands::end(const LocatedHost& host, const std::string& job) const {
  return run(host, {"agent", "--end", job});
}

Environment HostCommands::environment(const LocatedHost& host) const {
  return way_to(host).environment(environment_of_process());
}

StartCommand HostCommands::way_to(const LocatedHost& host) const {
  StartCommand way = way_;
  if (host.is_here) way.way = StartCommand::Way::here;
  return way;
}

std::vector<std::string> HostCommands::run(const LocatedHost& host, std::vector<std::string> words) const {
  words.insert(words.begin(), path_on(host));
  return way_to(host).words(host.listed.name, host.listed.user, words);
}

}  // namespace tutti::tools
