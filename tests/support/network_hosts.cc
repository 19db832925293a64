#include "tests/support/network_hosts.h"

#include <exception>

#include <unistd.h>

#include "tests/support/process.h"

namespace tutti::test {

NetworkHosts::NetworkHosts(int count, int cards) : count_(count) {
  bool made = true;
  for (int host = 0; made && host <= count_; ++host) made = run({"netns", "add", name(host)});
  for (int host = 0; made && host < count_; ++host) made = run({"-n", name(host), "link", "set", "lo", "up"});
  for (int card = 0; made && card < cards; ++card) made = add_card(card);
}

// Adds a card to every host, and a bridge between the cards.
bool NetworkHosts::add_card(int card) {
  const std::string hub = name(count_);
  const std::string bridge = "switch" + std::to_string(card), eth = "eth" + std::to_string(card);
  bool made = run({"-n", hub, "link", "add", bridge, "type", "bridge"}) &&
              run({"-n", hub, "link", "set", bridge, "up"});
  for (int host = 0; made && host < count_; ++host) {
    const std::string port = "port" + std::to_string(card) + "." + std::to_string(host);
    made = run({"-n", hub, "link", "add", port, "type", "veth", "peer", "name", eth, "netns", name(host)}) &&
           run({"-n", hub, "link", "set", port, "master", bridge, "up"}) &&
           run({"-n", name(host), "addr", "add", address(host, card) + "/24", "dev", eth}) &&
           run({"-n", name(host), "link", "set", eth, "up"});
  }
  return made;
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
