#include "transport/verbs/devices.h"

#include <cerrno>
#include <span>
#include <utility>

#include "core/error_text.h"
#include "core/fork_guard.h"

namespace tutti::verbs {
namespace {

std::string name_of(const std::string& device, unsigned port) {
  return device + " port " + std::to_string(port);
}

// Returns why a port cannot be used, or an empty text if it can. Fills in the port's attributes.
std::string examine(const Functions& functions, DevicePort& port, std::optional<int> gid_index) {
  ibv_context& context = port.device->context();
  port.attributes = {};
  auto* const attributes = reinterpret_cast<_compat_ibv_port_attr*>(&port.attributes);
  if (const int error = functions.query_port(&context, port.number, attributes)) return error_text(error);
  if (port.attributes.state != IBV_PORT_ACTIVE) return "the port is down";
  port.gids = usable_gids(functions, context, port.number, port.attributes, gid_index);
  if (!port.gids.empty()) return {};
  return gid_index ? "the address (GID) with index " + std::to_string(*gid_index) + " cannot be read"
                   : "no address (GID) can be read";
}

// Appends the usable ports of a device, and adds to `reasons` why other ports cannot be used. Each port gets
// a `Device` of its own, since an event can be read only once from a `Device`, and each port must see all
// events.
void append_ports(const Functions& functions, ibv_device* device, const PortFilter& filter,
                  std::optional<int> gid_index, std::vector<DevicePort>& ports, std::string& reasons) {
  DevicePort port;
  port.name = functions.get_device_name(device);
  const auto reject = [&](const std::string& what, const std::string& why) {
    reasons += (reasons.empty() ? "" : "; ") + what + ": " + why;
  };
  if (device->transport_type != IBV_TRANSPORT_IB)
    return reject(port.name, "it is neither an InfiniBand nor a RoCE device");
  port.device = Device::open(functions, device);
  if (port.device == nullptr) return reject(port.name, error_text(errno));
  if (const int error = functions.query_device(&port.device->context(), &port.limits))
    return reject(port.name, error_text(error));
  for (unsigned number = 1; number <= port.limits.phys_port_cnt; ++number) {
    port.number = static_cast<std::uint8_t>(number);
    if (!filter.takes(port.name, port.number)) {
      reject(name_of(port.name, number), "excluded by the list of devices");
      continue;
    }
    if (port.device == nullptr) port.device = Device::open(functions, device);
    if (port.device == nullptr) return reject(name_of(port.name, number), error_text(errno));
    const std::string why = examine(functions, port, gid_index);
    if (!why.empty()) {
      reject(name_of(port.name, number), why);
      continue;
    }
    ports.push_back(port);
    port.device.reset();
  }
}

}  // namespace

Device::Device(const Functions& functions, ibv_context* context) : functions_(functions), context_(context) {
  guard_descriptor(context->cmd_fd);
  guard_descriptor(context->async_fd);
}

Device::~Device() {
  release_descriptor(context_->cmd_fd);
  release_descriptor(context_->async_fd);
  functions_.close_device(context_);
}

std::shared_ptr<Device> Device::open(const Functions& functions, ibv_device* device) {
  ibv_context* const context = functions.open_device(device);
  return context == nullptr ? nullptr : std::shared_ptr<Device>(new Device(functions, context));
}

std::string DevicePort::describe() const {
  const Gid& best = gids.front();
  return name_of(name, number) + ", " + std::string(to_string(best.kind)) + " " + best.text();
}

Result<std::vector<DevicePort>> usable_ports(const Functions& functions, const PortFilter& filter,
                                             std::optional<int> gid_index) {
  int count = 0;
  ibv_device** const list = functions.get_device_list(&count);
  // A kernel without support for RDMA answers ENOSYS, which means the same as an empty list.
  if (list == nullptr && errno != ENOSYS)
    return Status(Code::unsupported, "the devices cannot be listed: " + error_text(errno));
  std::vector<DevicePort> ports;
  std::string reasons;
  for (int i = 0; list != nullptr && i < count; ++i)
    append_ports(functions, list[i], filter, gid_index, ports, reasons);
  if (list != nullptr) functions.free_device_list(list);
  if (!ports.empty()) return ports;
  if (reasons.empty()) return Status(Code::unsupported, "there is no InfiniBand or RoCE device");
  return Status(Code::unsupported, "no InfiniBand or RoCE device can be used: " + reasons);
}

}  // namespace tutti::verbs
