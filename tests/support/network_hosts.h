#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace tutti::test {

// `NetworkHosts` are network namespaces that act as hosts. Each has its own address on every card
// (eth0, eth1 ...). For each card number, a bridge joins the cards of all hosts. The bridges are in
// another namespace, so nothing outside of these namespaces changes. The destructor kills all
// processes in the namespaces, and removes the namespaces. The constructor needs the right to make
// namespaces, and the `ip` command.
class NetworkHosts {
 public:
  explicit NetworkHosts(int count, int cards = 1);
  ~NetworkHosts();
  NetworkHosts(const NetworkHosts&) = delete;
  NetworkHosts& operator=(const NetworkHosts&) = delete;

  // Returns the reason why there are no hosts, or an empty text if there are hosts.
  const std::string& problem() const { return problem_; }
  // Returns the path of the file for the network namespace of `host`.
  std::string file(int host) const { return "/run/netns/" + name(host); }
  // Returns the command that runs `command` on `host`.
  std::vector<std::string> on(int host, std::vector<std::string> command) const;
  std::string address(int host, int card = 0) const {
    return "10.203." + std::to_string(card) + "." + std::to_string(host + 1);
  }
  // Returns all processes of a host.
  std::vector<pid_t> pids_in(int host) const;

  // `cut` disconnects a host from the others, as if its cables had been pulled. `mend` connects it
  // again. Packets that are sent in the meantime are lost. Both functions throw std::runtime_error if the
  // kernel refuses.
  void cut(int host) const { set_links(host, "down"); }
  void mend(int host) const { set_links(host, "up"); }

 private:
  std::string name(int host) const;
  void add_card(int card) const;
  void set_links(int host, const std::string& state) const;
  void kill_all(int host) const;

  int count_;
  int cards_;
  std::string problem_;
};

}  // namespace tutti::test
