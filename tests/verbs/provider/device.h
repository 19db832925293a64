#pragma once

#include <infiniband/verbs.h>

#include "tests/verbs/provider/event_queue.h"
#include "tests/verbs/provider/settings.h"

namespace tutti::provider {

// A `Device` is a card with its ports.
struct Device : ibv_device {
  explicit Device(DeviceSettings description) : ibv_device{}, settings(std::move(description)) {
    node_type = IBV_NODE_CA;
    transport_type = settings.transport;
    settings.name.copy(name, sizeof name - 1);
    settings.name.copy(dev_name, sizeof dev_name - 1);
  }

  // Returns the port with this number, or null. The first port has the number 1.
  Port* port(int number) {
    const bool exists = number >= 1 && static_cast<std::size_t>(number) <= settings.ports.size();
    return exists ? &settings.ports[static_cast<std::size_t>(number - 1)] : nullptr;
  }

  DeviceSettings settings;
  bool present = true;         // false after the device was taken away
  std::size_t registered = 0;  // bytes that are registered
};

// A `Context` is an open device.
struct Context : ibv_context {
  explicit Context(Device& opened) : ibv_context{} {
    device = &opened;
    cmd_fd = -1;
    async_fd = events.descriptor();
    num_comp_vectors = 1;
  }
  Device& card() const { return *static_cast<Device*>(device); }

  EventQueue<ibv_async_event> events;  // what `ibv_get_async_event` reads
};

inline Device& card_of(const ibv_context* context) { return *static_cast<Device*>(context->device); }

}  // namespace tutti::provider
