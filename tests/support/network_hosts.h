#pragma once

#include <string>
#include <vector>

namespace tutti::test {

// `NetworkHosts` are network namespaces that act as hosts. Each has its own address on every card (eth0, eth1
// ...). For each card number, a bridge joins the cards of all hosts. The bridges are in one more namespace,
// so nothing outside these namespaces is touched. The destructor removes them. The constructor needs the
// rights to make namespaces, and the `ip` command.
class NetworkHosts {
 public:
  explicit NetworkHosts(int count, int cards = 1);
  ~NetworkHosts();
  NetworkHosts(const NetworkHosts&) = delete;
  NetworkHosts& operator=(const NetworkHosts&) = delete;

  // Returns why there are no hosts, or an empty text if there are.
  const std::string& problem() const { return problem_; }
  // Returns the command that runs `command` on `host`.
  std::vector<std::string> on(int host, std::vector<std::string> command) const;
  std::string address(int host, int card = 0) const {
    return "10.203." + std::to_string(card) + "." + std::to_string(host + 1);
  }

 private:
  std::string name(int host) const;
  bool add_card(int card);
  bool run(const std::vector<std::string>& words);

  int count_;
  std::string problem_;
};

}  // namespace tutti::test
