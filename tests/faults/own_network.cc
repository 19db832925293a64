#include "tests/faults/own_network.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tutti::test {

std::string enter_own_network(const std::string& port_range) {
  if (unshare(CLONE_NEWNET) != 0) {
    return std::string("no network namespace can be made here: ") + std::strerror(errno);
  }
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  const bool up = ioctl(any, SIOCSIFFLAGS, &request) == 0;
  close(any);
  if (!up) return "its loopback interface cannot be used";
  if (port_range.empty()) return "";
  std::ofstream range("/proc/sys/net/ipv4/ip_local_port_range");
  range << port_range << std::flush;
  return range ? "" : "its ports cannot be set";
}

}  // namespace tutti::test
