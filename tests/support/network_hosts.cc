#include "tests/support/network_hosts.h"

#include <charconv>
#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace tutti::test {
namespace {

void ip(std::vector<std::string> words) {
  words.insert(words.begin(), "ip");
  Process process(words);
  if (process.wait() != 0) throw std::runtime_error("ip: " + process.err());
}

// Returns the name of the bridge's end of the cable that joins a host's card to the bridge.
std::string port(int card, int host) { return "port" + std::to_string(card) + "." + std::to_string(host); }

// The device and inode of any file that stands for a namespace identify the namespace.
using Identity = std::pair<dev_t, ino_t>;

std::optional<Identity> identity(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return std::nullopt;
  return Identity(file.st_dev, file.st_ino);
}

}  // namespace

NetworkHosts::NetworkHosts(int count, int cards) : count_(count), cards_(cards) {
  try {
    for (int host = 0; host <= count_; ++host) ip({"netns", "add", name(host)});
    for (int host = 0; host < count_; ++host) ip({"-n", name(host), "link", "set", "lo", "up"});
    for (int card = 0; card < cards_; ++card) add_card(card);
  } catch (const std::exception& error) {
    problem_ = std::string("no network namespaces: ") + error.what();
  }
}

// Adds a card to every host, and a bridge between the cards.
void NetworkHosts::add_card(int card) const {
  const std::string hub = name(count_);
  const std::string bridge = "switch" + std::to_string(card), eth = "eth" + std::to_string(card);
  ip({"-n", hub, "link", "add", bridge, "type", "bridge"});
  ip({"-n", hub, "link", "set", bridge, "up"});
  for (int host = 0; host < count_; ++host) {
    ip({"-n", hub, "link", "add", port(card, host), "type", "veth", "peer", "name", eth, "netns",
        name(host)});
    ip({"-n", hub, "link", "set", port(card, host), "master", bridge, "up"});
    ip({"-n", name(host), "addr", "add", address(host, card) + "/24", "dev", eth});
    ip({"-n", name(host), "link", "set", eth, "up"});
  }
}

NetworkHosts::~NetworkHosts() {
  for (int host = 0; host <= count_; ++host) {
    kill_all(host);
    try {
      ip({"netns", "del", name(host)});
    } catch (const std::exception&) {  // the constructor may have failed before this step
    }
  }
}

std::string NetworkHosts::name(int host) const {
  return "tutti-test-" + std::to_string(::getpid()) + "-" + std::to_string(host);
}

std::vector<std::string> NetworkHosts::on(int host, std::vector<std::string> command) const {
  command.insert(command.begin(), {"ip", "netns", "exec", name(host)});
  return command;
}

std::vector<pid_t> NetworkHosts::pids_in(int host) const {
  const std::optional<Identity> wanted = identity(file(host));
  std::vector<pid_t> pids;
  if (!wanted) return pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string number = entry.path().filename().string();
    pid_t pid = 0;
    const char* const end = number.data() + number.size();
    if (std::from_chars(number.data(), end, pid).ptr != end) continue;
    if (identity(entry.path().string() + "/ns/net") == wanted) pids.push_back(pid);
  }
  return pids;
}

// Turns the bridge's ends of a host's cables off or on. The host keeps its addresses and routes.
void NetworkHosts::set_links(int host, const std::string& state) const {
  for (int card = 0; card < cards_; ++card) {
    ip({"-n", name(count_), "link", "set", port(card, host), state});
  }
}

// Kills the processes of a host until none is left. It tries repeatedly, since a process may start
// another process in the meantime.
void NetworkHosts::kill_all(int host) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < end) {
    const std::vector<pid_t> pids = pids_in(host);
    if (pids.empty()) return;
    for (const pid_t pid : pids) kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace tutti::test
