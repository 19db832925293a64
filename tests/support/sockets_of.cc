#include "tests/support/sockets_of.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tutti::test {
namespace {

std::string folder_of(pid_t pid) { return "/proc/" + std::to_string(pid); }

std::vector<std::string> targets_of(pid_t pid) {
  std::vector<std::string> targets;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(pid) + "/fd", error)) {
    targets.push_back(std::filesystem::read_symlink(entry.path(), error).string());
  }
  return targets;
}

}  // namespace

std::vector<std::uint16_t> listening_ports(pid_t pid) {
  const auto targets = targets_of(pid);
  std::vector<std::uint16_t> ports;
  std::ifstream table(folder_of(pid) + "/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::array<std::string, 10> word;
    for (std::string& each : word) words >> each;
    if (word[3] != "0A") break;  // the table begins with all listening sockets
    if (std::ranges::find(targets, "socket:[" + word[9] + "]") == targets.end()) continue;
    ports.push_back(
        static_cast<std::uint16_t>(std::stoul(word[1].substr(word[1].find(':') + 1), nullptr, 16)));
  }
  return ports;
}

std::size_t open_descriptors(pid_t pid) { return targets_of(pid).size(); }

std::size_t memory_of(pid_t pid) {
  std::ifstream file(folder_of(pid) + "/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

LoopbackSocket::LoopbackSocket(std::uint16_t port)
    : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (descriptor_ < 0 || connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return;
  close(std::exchange(descriptor_, -1));
}

LoopbackSocket::~LoopbackSocket() {
  if (descriptor_ >= 0) close(descriptor_);
}

LoopbackSocket::LoopbackSocket(LoopbackSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

void LoopbackSocket::say(const std::string& text) {
  static_cast<void>(send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

void LoopbackSocket::reset() {
  const linger at_once{1, 0};
  setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(std::exchange(descriptor_, -1));
}

bool LoopbackSocket::is_dropped() {
  for (;;) {
    pollfd readable{descriptor_, POLLIN, 0};
    if (poll(&readable, 1, 30'000) <= 0) return false;
    std::array<char, 4096> some;
    if (recv(descriptor_, some.data(), some.size(), 0) <= 0) return true;
  }
}

}  // namespace tutti::test
