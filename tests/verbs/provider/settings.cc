#include "tests/verbs/provider/settings.h"

#include <stdexcept>

#include <arpa/inet.h>

namespace tutti::provider {

Gid make_gid(const std::string& address, ibv_gid_type type) {
  Gid gid;
  gid.type = type;
  if (inet_pton(AF_INET6, address.c_str(), gid.value.raw) != 1) {
    throw std::invalid_argument(address + " is not an IPv6 address");
  }
  return gid;
}

Gid unreadable_gid(int error) {
  Gid gid;
  gid.error = error;
  return gid;
}

DeviceSettings ethernet_device(const std::string& name, const std::string& ipv4) {
  DeviceSettings device;
  device.name = name;
  Port port;
  port.gids = {make_gid("fe80::" + ipv4), make_gid("::ffff:" + ipv4)};
  device.ports = {port};
  return device;
}

}  // namespace tutti::provider
