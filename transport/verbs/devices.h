#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "transport/verbs/gid.h"
#include "transport/verbs/library.h"
#include "transport/verbs/port_filter.h"

namespace tutti::verbs {

// A `Device` is an open device. The destructor closes it.
class Device {
 public:
  // Returns null, and sets `errno`, if the device cannot be opened.
  static std::shared_ptr<Device> open(const Functions& functions, ibv_device* device);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_context& context() const { return *context_; }

 private:
  Device(const Functions& functions, ibv_context* context);

  const Functions& functions_;
  ibv_context* const context_;
};

// The vendor that Linux's Soft-RoCE devices report.
inline constexpr std::uint32_t soft_roce_vendor = 0xffffff;

// A `DevicePort` is a port of a device over which ranks can be reached.
struct DevicePort {
  std::shared_ptr<Device> device;
  std::string name;  // of the device
  std::uint8_t number = 1;
  ibv_device_attr limits = {};
  ibv_port_attr attributes = {};
  std::vector<Gid> gids;  // one of each kind, best first; never empty

  // Returns whether this is a device of Linux's Soft-RoCE, which sends over an ordinary network interface.
  bool is_soft_roce() const { return limits.vendor_id == soft_roce_vendor; }
  bool is_ethernet() const { return attributes.link_layer == IBV_LINK_LAYER_ETHERNET; }
  // Returns a text such as "rxe0 port 1, RoCEv2, IPv4 10.7.0.1".
  std::string describe() const;
};

// Returns the ports that are active, have an address and pass the filter, in the order of the devices. If
// there are none, fails with `unsupported`; the message says for each device why it cannot be used.
Result<std::vector<DevicePort>> usable_ports(const Functions& functions, const PortFilter& filter,
                                             std::optional<int> gid_index);

}  // namespace tutti::verbs
