#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

namespace tutti::provider {

// `Gid` is an entry of the GID table of a port.
struct Gid {
  ibv_gid value{};
  ibv_gid_type type = IBV_GID_TYPE_ROCE_V2;
  std::uint32_t interface = 2;  // the index of the network interface that has the address
  int error = 0;  // the errno with which reading the entry fails, as in some containers; 0 if it can be read
};

// Makes an entry from an address as people write it: "::ffff:10.7.0.1", "fe80::1".
Gid make_gid(const std::string& address, ibv_gid_type type = IBV_GID_TYPE_ROCE_V2);
// Makes an entry that is in the table, but cannot be read.
Gid unreadable_gid(int error);

struct Port {
  ibv_port_state state = IBV_PORT_ACTIVE;
  ibv_mtu mtu = IBV_MTU_4096;
  std::uint8_t link_layer = IBV_LINK_LAYER_ETHERNET;
  std::uint16_t lid = 0;
  std::vector<Gid> gids = {};
};

// `DeviceSettings` describes a device. The limits are those of Soft-RoCE, unless a test sets others.
struct DeviceSettings {
  std::string name = "fake0";
  std::uint32_t vendor = 0;
  ibv_transport_type transport = IBV_TRANSPORT_IB;
  std::vector<Port> ports = {};
  std::uint32_t max_inline = 512;
  int max_sge = 32;
  int max_requests = 1024;  // in a queue of a queue pair
  int max_completions = 32767;
  bool windows = true;                                            // whether it has memory windows of type 2
  std::size_t memlock = std::numeric_limits<std::size_t>::max();  // bytes that can be registered at a time
};

// Returns a device with one port on Ethernet, whose GID table has a link-local entry and an IPv4 entry.
DeviceSettings ethernet_device(const std::string& name, const std::string& ipv4);

}  // namespace tutti::provider
