#include <exception>

#include <unistd.h>

#include <tutti/tests/support/network_hosts.h>
#include <tutti/tests/support/process.h>

namespace tutti::test {

NetworkHosts::NetworkHosts(int count) : count_(count) {
  const std::string hub = name(count_);
  bool made = run({"netns", "add", hub}) && run({"-n", hub, "link", "add", "switch", "type", "bridge"}) &&
              run({"-n", hub, "link", "set", "switch", "up"});
  for (int host = 0; made && host < count_; ++host) {
    const std::string port = "port" + std::to_string(host);
    made =
        run({"netns", "add", name(host)}) &&
        run({"-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name(host)}) &&
        run({"-n", hub, "link", "set", port, "master", "switch", "up"}) &&
        run({"-n", name(host), "addr", "add", address(host) + "/24", "dev", "eth0"}) &&
        run({"-n", name(host), "link", "set", "lo", "up"}) &&
        run({"-n", name(host), "link", "set", "eth0", "up"});
  }
}

NetworkHosts::~NetworkHosts() {
  for (int host = 0; host <= count_; ++host) run({"netns", "del", name(host)});
}

std::string NetworkHosts::name(int host) const {
  return "tutti-test-" + std::to_string(::getpid()) + "-" + std::to_string(host);
}

std::vector<std::string> NetworkHosts::on(int host, std::vector<std::string> command) const {
  command.insert(command.begin(), {"ip", "netns", "exec", name(host)});
  return command;
}

bool NetworkHosts::run(const std::vector<std::string>& words) {
  std::vector<std::string> command = {"ip"};
  command.insert(command.end(), words.begin(), words.end());
  try {
    Process process(command);
    if (process.wait() == 0) return true;
    if (problem_.empty()) problem_ = "no network namespaces: " + process.err();
  } catch (const std::exception& error) {
    if (problem_.empty()) problem_ = std::string("no network namespaces: ") + error.what();
  }
  return false;
}

}  // namespace tutti::test
