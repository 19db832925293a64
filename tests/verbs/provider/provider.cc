#include "tests/verbs/provider/provider.h"

#include <stdexcept>

#include "tests/verbs/provider/calls.h"

namespace tutti::provider {
namespace {

verbs::Functions make_table() {
  verbs::Functions table{};
  add_device_calls(table);
  add_memory_calls(table);
  add_queue_calls(table);
  add_pair_calls(table);
  return table;
}

void send_port_event(const Context& context, ibv_event_type type, int port) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  context.events.add(event);
}

void send_pair_event(QueuePair& pair, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = &pair;
  static_cast<Context*>(pair.context)->events.add(event);
}

}  // namespace

Provider::Provider(const std::vector<DeviceSettings>& devices) {
  if (Locked::current != nullptr) throw std::logic_error("there is a provider already");
  for (const DeviceSettings& settings : devices) {
    machine_.devices.push_back(std::make_unique<Device>(settings));
  }
  machine_.wire.report = &send_pair_event;
  Locked::current = &machine_;
}

Provider::~Provider() { Locked::current = nullptr; }

const verbs::Functions& Provider::functions() {
  static const verbs::Functions table = make_table();
  return table;
}

Device& Provider::device(const std::string& name) {
  for (const auto& device : machine_.devices) {
    if (device->settings.name == name) return *device;
  }
  throw std::invalid_argument("there is no device " + name);
}

void Provider::set_port(const std::string& name, int number, ibv_port_state state) {
  const Locked machine;
  Device& card = device(name);
  Port* const port = card.port(number);
  if (port == nullptr) throw std::invalid_argument("there is no such port");
  port->state = state;
  const ibv_event_type type = state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
  for (const auto& [key, context] : machine->contexts) {
    if (context->device == &card) send_port_event(*context, type, number);
  }
  machine->wire.advance();
}

void Provider::remove(const std::string& name) {
  const Locked machine;
  Device& card = device(name);
  card.present = false;
  for (const auto& [key, context] : machine->contexts) {
    if (context->device == &card) send_port_event(*context, IBV_EVENT_DEVICE_FATAL, 0);
  }
  machine->wire.each([&](QueuePair& pair) {
    if (pair.context->device == &card) pair.break_down();
  });
  machine->wire.advance();
  for (const auto& [key, context] : machine->contexts) {
    if (context->device == &card) context->events.end();
  }
  for (const auto& [key, channel] : machine->channels) {
    if (channel->context->device == &card) channel->events.end();
  }
}

void Provider::break_pair(std::uint32_t number) {
  const Locked machine;
  QueuePair* const pair = machine->wire.find(number);
  if (pair == nullptr) throw std::invalid_argument("there is no such queue pair");
  break_down(*pair);
  machine->wire.advance();
}

void Provider::break_pairs(const std::string& name) {
  const Locked machine;
  const Device& card = device(name);
  machine->wire.each([&](QueuePair& pair) {
    if (pair.context->device == &card) break_down(pair);
  });
  machine->wire.advance();
}

void Provider::break_down(QueuePair& pair) {
  send_pair_event(pair, IBV_EVENT_QP_FATAL);
  pair.break_down();
}

void Provider::cut(const Gid& one, const Gid& other) {
  const Locked machine;
  machine->wire.cut(one.value, other.value);
  machine->wire.advance();
}

void Provider::unplug_after(const std::string& name, int requests, bool answer_lost) {
  const Locked machine;
  machine->wire.unplug_after(device(name), requests, answer_lost);
  machine->wire.advance();
}

void Provider::hold() {
  const Locked machine;
  machine->wire.hold(Wire::Held::all);
}

void Provider::hold_writes() {
  const Locked machine;
  machine->wire.hold(Wire::Held::writes);
}

void Provider::hold_invalidations() {
  const Locked machine;
  machine->wire.hold(Wire::Held::invalidations);
}

void Provider::write_as(const Write& write, const std::vector<std::byte>& bytes) {
  const Locked machine;
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), static_cast<std::uint32_t>(bytes.size()), 0};
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_INLINE;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = write.address;
  request.wr.rdma.rkey = write.key;
  QueuePair* const pair = machine->wire.find(write.pair);
  if (pair == nullptr || pair->post(request) != 0) throw std::invalid_argument("the write cannot be posted");
  machine->wire.advance();
}

bool Provider::is_broken(std::uint32_t number) {
  const Locked machine;
  const QueuePair* const pair = machine->wire.find(number);
  return pair == nullptr || pair->state == IBV_QPS_ERR;
}

void Provider::release() {
  const Locked machine;
  machine->wire.hold(Wire::Held::nothing);
  machine->wire.advance();
}

void Provider::fail_sends(int count, ibv_wc_status status) {
  const Locked machine;
  machine->wire.fail_next(count, status);
}

Record Provider::record() {
  const Locked machine;
  return machine->record;
}

}  // namespace tutti::provider
