#include <cerrno>

#include "tests/verbs/provider/calls.h"
#include "tests/verbs/provider/machine.h"

namespace tutti::provider {
namespace {

ibv_comp_channel* create_channel(ibv_context* context) {
  const Locked machine;
  auto channel = std::make_unique<CompletionChannel>();
  channel->context = context;
  channel->fd = channel->events.descriptor();
  ++machine->record.counts.channels;
  return keep(machine->channels, std::move(channel));
}

int destroy_channel(ibv_comp_channel* channel) {
  const Locked machine;
  if (any_uses(machine->queues, [&](const auto& queue) { return queue.channel == channel; })) return EBUSY;
  --machine->record.counts.channels;
  machine->channels.erase(channel);
  return 0;
}

ibv_cq* create_queue(ibv_context* context, int entries, void* user, ibv_comp_channel* channel, int) {
  const Locked machine;
  if (entries < 1 || entries > card_of(context).settings.max_completions) return refused(EINVAL);
  auto queue = std::make_unique<CompletionQueue>();
  queue->context = context;
  queue->channel = channel;
  queue->cq_context = user;
  queue->cqe = entries;
  ++machine->record.counts.queues;
  return keep(machine->queues, std::move(queue));
}

// The real libibverbs waits here until the program has acknowledged all events. The provider records a
// mistake instead.
int destroy_queue(ibv_cq* queue) {
  const Locked machine;
  const auto uses = [&](const auto& pair) { return pair.send_cq == queue || pair.recv_cq == queue; };
  if (any_uses(machine->pairs, uses)) return EBUSY;
  if (static_cast<CompletionQueue*>(queue)->unacknowledged() != 0) {
    machine->mistake("a completion queue was destroyed before its events were acknowledged");
  }
  --machine->record.counts.queues;
  machine->queues.erase(queue);
  return 0;
}

// This function waits for an event, and locks the machine only once the event has arrived. Events of
// destroyed queues are dropped.
int get_event(ibv_comp_channel* channel, ibv_cq** queue, void** user) {
  CompletionQueue* ready = nullptr;
  while (static_cast<CompletionChannel*>(channel)->events.take(ready)) {
    const Locked machine;
    if (!machine->queues.contains(ready)) continue;
    ready->event_taken();
    *queue = ready;
    *user = ready->cq_context;
    return 0;
  }
  const Locked machine;
  ++machine->record.traffic.vain_reads;
  return -1;
}

void acknowledge_events(ibv_cq* queue, unsigned count) {
  const Locked machine;
  static_cast<CompletionQueue*>(queue)->acknowledge(static_cast<int>(count));
}

}  // namespace

void add_queue_calls(verbs::Functions& table) {
  table.create_comp_channel = &create_channel;
  table.destroy_comp_channel = &destroy_channel;
  table.create_cq = &create_queue;
  table.destroy_cq = &destroy_queue;
  table.get_cq_event = &get_event;
  table.ack_cq_events = &acknowledge_events;
}

}  // namespace tutti::provider
