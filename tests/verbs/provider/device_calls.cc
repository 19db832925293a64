#include <cerrno>

#include "tests/verbs/provider/calls.h"
#include "tests/verbs/provider/machine.h"

namespace tutti::provider {
namespace {

int fork_init() {
  const Locked machine;
  machine->prepared_for_forks = true;
  return 0;
}

ibv_device** get_device_list(int* count) {
  const Locked machine;
  auto** const list = new ibv_device* [machine->devices.size() + 1] {};
  int listed = 0;
  for (const auto& device : machine->devices) {
    if (device->present) list[listed++] = device.get();
  }
  if (count != nullptr) *count = listed;
  return list;
}

void free_device_list(ibv_device** list) { delete[] list; }

const char* get_device_name(ibv_device* device) { return device->name; }

ibv_context* open_device(ibv_device* device) {
  const Locked machine;
  auto& card = *static_cast<Device*>(device);
  if (!card.present) return refused(ENODEV);
  auto context = std::make_unique<Context>(card);
  context->ops = context_operations();
  ++machine->record.counts.contexts;
  return keep(machine->contexts, std::move(context));
}

int close_device(ibv_context* context) {
  const Locked machine;
  const auto inside = [&](const auto& object) { return object.context == context; };
  if (any_uses(machine->domains, inside) || any_uses(machine->queues, inside) ||
      any_uses(machine->channels, inside)) {
    machine->mistake("a context was closed that was in use");
  }
  --machine->record.counts.contexts;
  machine->contexts.erase(context);
  return 0;
}

int query_device(ibv_context* context, ibv_device_attr* attributes) {
  const Locked machine;
  const DeviceSettings& settings = card_of(context).settings;
  *attributes = {};
  attributes->vendor_id = settings.vendor;
  attributes->max_qp_wr = settings.max_requests;
  attributes->max_sge = settings.max_sge;
  attributes->max_cqe = settings.max_completions;
  attributes->max_mr_size = ~std::uint64_t{0};
  if (settings.windows) attributes->device_cap_flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  attributes->max_qp = attributes->max_mr = attributes->max_cq = attributes->max_pd = 65536;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 128;
  attributes->phys_port_cnt = static_cast<std::uint8_t>(settings.ports.size());
  return 0;
}

int query_port(ibv_context* context, std::uint8_t number, _compat_ibv_port_attr* to) {
  const Locked machine;
  const Port* const port = card_of(context).port(number);
  if (port == nullptr) return EINVAL;
  auto& attributes = *reinterpret_cast<ibv_port_attr*>(to);
  attributes.state = port->state;
  attributes.max_mtu = IBV_MTU_4096;
  attributes.active_mtu = port->mtu;
  attributes.gid_tbl_len = static_cast<int>(port->gids.size());
  attributes.max_msg_sz = 1U << 30U;
  attributes.lid = port->lid;
  attributes.active_width = 2;   // four lanes
  attributes.active_speed = 32;  // of 25 Gbit/s
  attributes.link_layer = port->link_layer;
  return 0;
}

int query_gid(ibv_context* context, std::uint32_t number, std::uint32_t index, ibv_gid_entry* entry,
              std::uint32_t, std::size_t size) {
  const Locked machine;
  const Port* const port = card_of(context).port(static_cast<int>(number));
  if (port == nullptr || index >= port->gids.size() || size < sizeof *entry) return EINVAL;
  const Gid& gid = port->gids[index];
  if (gid.error != 0) return gid.error;
  *entry = {gid.value, index, number, static_cast<std::uint32_t>(gid.type), gid.interface};
  return 0;
}

bool concerns_pair(const ibv_async_event& event) {
  return event.event_type == IBV_EVENT_QP_FATAL || event.event_type == IBV_EVENT_QP_ACCESS_ERR;
}

// This function waits for an event, and locks the machine only once the event has arrived. Events of
// destroyed queue pairs are dropped.
int get_async_event(ibv_context* context, ibv_async_event* event) {
  while (static_cast<Context*>(context)->events.take(*event)) {
    const Locked machine;
    if (!concerns_pair(*event) || machine->pairs.contains(event->element.qp)) return 0;
  }
  const Locked machine;
  ++machine->record.traffic.vain_reads;
  return -1;
}

void ack_async_event(ibv_async_event*) {}

const char* wc_status_str(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "success";
    case IBV_WC_RETRY_EXC_ERR:
      return "transport retry counter exceeded";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "RNR retry counter exceeded";
    case IBV_WC_WR_FLUSH_ERR:
      return "Work Request Flushed Error";
    case IBV_WC_REM_ACCESS_ERR:
      return "remote access error";
    default:
      return "another error";
  }
}

const char* event_type_str(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_PORT_ERR:
      return "port error";
    case IBV_EVENT_QP_FATAL:
      return "local work queue catastrophic error";
    case IBV_EVENT_DEVICE_FATAL:
      return "local catastrophic error";
    default:
      return "another event";
  }
}

}  // namespace

void add_device_calls(verbs::Functions& table) {
  table.fork_init = &fork_init;
  table.get_device_list = &get_device_list;
  table.free_device_list = &free_device_list;
  table.get_device_name = &get_device_name;
  table.open_device = &open_device;
  table.close_device = &close_device;
  table.query_device = &query_device;
  table.query_port = &query_port;
  table.query_gid_ex = &query_gid;
  table.get_async_event = &get_async_event;
  table.ack_async_event = &ack_async_event;
  table.wc_status_str = &wc_status_str;
  table.event_type_str = &event_type_str;
}

}  // namespace tutti::provider
