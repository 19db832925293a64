#include <cerrno>

#include "tests/verbs/provider/calls.h"
#include "tests/verbs/provider/machine.h"

namespace tutti::provider {
namespace {

ibv_qp* create_pair(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  const Locked machine;
  const DeviceSettings& limits = card_of(domain->context).settings;
  const auto requests = static_cast<std::uint32_t>(limits.max_requests);
  const auto pieces = static_cast<std::uint32_t>(limits.max_sge);
  const ibv_qp_cap& room = wanted->cap;
  const bool fits = room.max_send_wr <= requests && room.max_recv_wr <= requests &&
                    room.max_send_sge <= pieces && room.max_recv_sge <= pieces &&
                    room.max_inline_data <= limits.max_inline;
  if (wanted->qp_type != IBV_QPT_RC || !fits) return refused(EINVAL);
  auto pair = std::make_unique<QueuePair>(*domain, *wanted, ++machine->last_pair, machine->record);
  machine->wire.add(*pair);
  ++machine->record.counts.pairs;
  return keep(machine->pairs, std::move(pair));
}

int modify_pair(ibv_qp* pair, ibv_qp_attr* attributes, int mask) {
  const Locked machine;
  const int error = static_cast<QueuePair*>(pair)->modify(*attributes, mask);
  machine->wire.advance();
  return error;
}

// When a queue pair that still has windows is destroyed, Soft-RoCE waits for ever. So the provider records a
// mistake.
int destroy_pair(ibv_qp* pair) {
  const Locked machine;
  if (machine->regions.any_window_of(pair->qp_num))
    machine->mistake("a queue pair was destroyed before its memory windows");
  machine->wire.remove(*static_cast<QueuePair*>(pair));
  --machine->record.counts.pairs;
  machine->pairs.erase(pair);
  machine->wire.advance();
  return 0;
}

// Posts the requests of a list, one after the other, until one fails.
template <class Request>
int post(ibv_qp* pair, Request* request, Request** bad) {
  const Locked machine;
  int error = 0;
  for (; request != nullptr; request = request->next) {
    error = static_cast<QueuePair*>(pair)->post(*request);
    if (error != 0) break;
  }
  *bad = request;
  machine->wire.advance();
  return error;
}

int poll_queue(ibv_cq* queue, int most, ibv_wc* completions) {
  const Locked machine;
  int taken = 0;
  CompletionQueue::Freed freed;
  while (taken < most && static_cast<CompletionQueue*>(queue)->take(completions[taken], freed)) {
    if (QueuePair* const pair = machine->wire.find(freed.pair)) pair->free(freed);
    ++taken;
  }
  return taken;
}

int request_event(ibv_cq* queue, int only_solicited) {
  const Locked machine;
  static_cast<CompletionQueue*>(queue)->request_event(only_solicited != 0);
  return 0;
}

}  // namespace

void add_pair_calls(verbs::Functions& table) {
  table.create_qp = &create_pair;
  table.modify_qp = &modify_pair;
  table.destroy_qp = &destroy_pair;
}

ibv_context_ops context_operations() {
  ibv_context_ops operations{};
  operations.poll_cq = &poll_queue;
  operations.req_notify_cq = &request_event;
  operations.post_send = &post<ibv_send_wr>;
  operations.post_recv = &post<ibv_recv_wr>;
  add_window_operations(operations);
  return operations;
}

}  // namespace tutti::provider
