#include "tests/verbs/provider/wire.h"

#include <algorithm>
#include <cstring>

namespace tutti::provider {
namespace {

constexpr int retries_without_end = 7;  // the `rnr_retry` that means endless retries

bool writes(const SendRequest& request) {
  return request.opcode == IBV_WR_RDMA_WRITE || request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
bool takes_receive(const SendRequest& request) { return request.opcode != IBV_WR_RDMA_WRITE; }
bool has_immediate(const SendRequest& request) {
  return request.opcode == IBV_WR_SEND_WITH_IMM || request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool same(const ibv_gid& one, const ibv_gid& other) {
  return std::memcmp(one.raw, other.raw, sizeof one.raw) == 0;
}

std::size_t room_of(const ReceiveRequest& receive) {
  std::size_t room = 0;
  for (const ibv_sge& piece : receive.pieces) room += piece.length;
  return room;
}

// Returns whether `to` is connected to `from`, and expects the packet number with which `from` begins.
bool are_connected(const QueuePair& from, const QueuePair& to) {
  return to.attributes().dest_qp_num == from.qp_num &&
         (to.attributes().rq_psn & 0xffffffu) == (from.attributes().sq_psn & 0xffffffu);
}

// Returns the GID that the pair sends from, or null if its path needs no GID (InfiniBand within a subnet).
const Gid* source_of(const QueuePair& pair) {
  const ibv_ah_attr& path = pair.attributes().ah_attr;
  return path.is_global == 0 ? nullptr : &pair.port()->gids[path.grh.sgid_index];
}

// Returns whether the address to which `from` sends its packets is an address of the port of `to`.
bool is_addressed(const QueuePair& from, const QueuePair& to) {
  const Gid* const source = source_of(from);
  const ibv_ah_attr& path = from.attributes().ah_attr;
  if (source == nullptr) return path.dlid == to.port()->lid;
  return std::ranges::any_of(to.port()->gids, [&](const Gid& gid) {
    return gid.error == 0 && gid.type == source->type && same(gid.value, path.grh.dgid);
  });
}

}  // namespace

QueuePair* Wire::find(std::uint32_t number) const {
  const auto found = pairs_.find(number);
  return found == pairs_.end() ? nullptr : found->second;
}

void Wire::each(const std::function<void(QueuePair&)>& visit) const {
  for (const auto& [number, pair] : pairs_) visit(*pair);
}

void Wire::advance() {
  for (bool again = true; again && held_ != Held::all;) {
    again = false;
    for (const auto& [number, pair] : pairs_) again = advance(*pair) || again;
  }
}

bool Wire::is_held(const SendRequest& request) const {
  return (held_ == Held::writes && writes(request)) ||
         (held_ == Held::invalidations && request.opcode == IBV_WR_LOCAL_INV);
}

// Carries out the requests of one pair until one has to wait. Returns whether any was carried out.
bool Wire::advance(QueuePair& from) {
  bool any = false;
  while (from.state == IBV_QPS_RTS) {
    const SendRequest* const request = from.next_send();
    if (request == nullptr || is_held(*request)) break;
    if (carry_out(from, *request) == Outcome::waits) break;
    any = true;
  }
  return any;
}

Wire::Outcome Wire::carry_out(QueuePair& from, const SendRequest& request) {
  if (failing_.first > 0) {
    --failing_.first;
    return end(from, failing_.second);
  }
  if (request.opcode == IBV_WR_BIND_MW || request.opcode == IBV_WR_LOCAL_INV)
    return end(from, change_window(from, request) ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR);
  QueuePair* to = nullptr;
  const Reach way = reach(from, to);
  if (way == Reach::later) return Outcome::waits;
  if (way == Reach::never) return end(from, IBV_WC_RETRY_EXC_ERR);
  if (takes_receive(request) && to->next_receive() == nullptr) return wait_for_receive(from);
  const std::optional<std::vector<std::byte>> payload = payload_of(from, request);
  if (!payload) return end(from, IBV_WC_LOC_PROT_ERR);
  if (writes(request) && !write(*to, request, *payload)) {
    report(*to, IBV_EVENT_QP_ACCESS_ERR);
    to->break_down();
    return end(from, IBV_WC_REM_ACCESS_ERR);
  }
  if (writes(request)) record_.written[from.context->device->name] += payload->size();
  if (!takes_receive(request)) return end(from, IBV_WC_SUCCESS);
  return end(from, deliver(*to, request, *payload) ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR);
}

// Ends a request. Counts the requests of a card that will be unplugged.
Wire::Outcome Wire::end(QueuePair& from, ibv_wc_status status) {
  const auto found = unplugged_.find(&card_of(from.context));
  const bool last = found != unplugged_.end() && found->second.left > 0 && --found->second.left == 0;
  from.end_send(last && found->second.answer_lost ? IBV_WC_RETRY_EXC_ERR : status);
  return Outcome::done;
}

bool Wire::is_unplugged(const QueuePair& pair) const {
  const auto found = unplugged_.find(&card_of(pair.context));
  return found != unplugged_.end() && found->second.left == 0;
}

// Carries out a request that concerns a window of this side only.
bool Wire::change_window(const QueuePair& from, const SendRequest& request) {
  if (request.opcode == IBV_WR_LOCAL_INV) return regions_.invalidate(request.key, from.pd);
  return regions_.bind(request.part, *static_cast<Window*>(request.window), request.key, from);
}

// Finds out whether packets of `from` reach their peer. If the peer is not connected yet, they may reach it
// later, since a card sends its packets again for seconds. They never reach a peer that is gone.
Wire::Reach Wire::reach(const QueuePair& from, QueuePair*& to) const {
  to = find(from.attributes().dest_qp_num);
  if (to == nullptr || !card_of(from.context).present || !card_of(to->context).present) return Reach::never;
  if (is_unplugged(from) || is_unplugged(*to)) return Reach::never;
  if (to->may_receive_later()) return Reach::later;
  if (!to->can_receive() || !are_connected(from, *to)) return Reach::never;
  if (from.port()->state != IBV_PORT_ACTIVE || to->port()->state != IBV_PORT_ACTIVE) return Reach::never;
  if (!is_addressed(from, *to) || !is_addressed(*to, from)) return Reach::never;
  const Gid* const source = source_of(from);
  const bool cut = source != nullptr && is_cut(source->value, from.attributes().ah_attr.grh.dgid);
  return cut ? Reach::never : Reach::now;
}

bool Wire::is_cut(const ibv_gid& one, const ibv_gid& other) const {
  return std::ranges::any_of(cuts_, [&](const std::pair<ibv_gid, ibv_gid>& cut) {
    return (same(cut.first, one) && same(cut.second, other)) ||
           (same(cut.first, other) && same(cut.second, one));
  });
}

Wire::Outcome Wire::wait_for_receive(QueuePair& from) {
  ++record_.traffic.not_ready;
  if (from.attributes().rnr_retry == retries_without_end) return Outcome::waits;
  from.end_send(IBV_WC_RNR_RETRY_EXC_ERR);
  return Outcome::done;
}

// Returns the payload of the request, or nothing if one of its pieces is not in memory that the queue pair
// may read.
std::optional<std::vector<std::byte>> Wire::payload_of(const QueuePair& from,
                                                       const SendRequest& request) const {
  if ((request.flags & IBV_SEND_INLINE) != 0) return request.payload;
  std::vector<std::byte> payload;
  for (const ibv_sge& piece : request.pieces) {
    const Region* const region = regions_.local(piece.lkey);
    if (region == nullptr || !region->covers(from.pd, piece.addr, piece.length, 0)) return std::nullopt;
    const auto* const begin = reinterpret_cast<const std::byte*>(piece.addr);
    payload.insert(payload.end(), begin, begin + piece.length);
  }
  return payload;
}

// Writes into the peer's memory. Returns false if the peer does not permit that.
bool Wire::write(const QueuePair& to, const SendRequest& request,
                 const std::vector<std::byte>& payload) const {
  if ((to.attributes().qp_access_flags & IBV_ACCESS_REMOTE_WRITE) == 0) return false;
  if (payload.empty()) return true;
  const Region* const region = regions_.remote(request.key);
  const Window* const window = regions_.window(request.key);
  if (region != nullptr) {
    if (!region->covers(to.pd, request.address, payload.size(), IBV_ACCESS_REMOTE_WRITE)) return false;
  } else if (window == nullptr || !window->covers(to.qp_num, request.address, payload.size())) {
    return false;
  }
  std::memcpy(reinterpret_cast<void*>(request.address), payload.data(), payload.size());
  return true;
}

// Ends the peer's oldest receive. Returns false if the receive cannot take the message.
bool Wire::deliver(QueuePair& to, const SendRequest& request, const std::vector<std::byte>& payload) const {
  const ReceiveRequest& receive = *to.next_receive();
  if (!writes(request)) {
    if (room_of(receive) < payload.size()) {
      to.fail_receive(IBV_WC_LOC_LEN_ERR);
      return false;
    }
    if (!scatter(to, receive, payload)) {
      to.fail_receive(IBV_WC_LOC_PROT_ERR);
      return false;
    }
  }
  ibv_wc completion{};
  completion.opcode = writes(request) ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  completion.byte_len = static_cast<std::uint32_t>(payload.size());
  if (has_immediate(request)) {
    completion.wc_flags = IBV_WC_WITH_IMM;
    completion.imm_data = request.immediate;
  }
  to.end_receive(completion, (request.flags & IBV_SEND_SOLICITED) != 0);
  return true;
}

bool Wire::scatter(const QueuePair& to, const ReceiveRequest& receive,
                   const std::vector<std::byte>& payload) const {
  std::size_t from = 0;
  for (const ibv_sge& piece : receive.pieces) {
    const std::size_t bytes = std::min<std::size_t>(piece.length, payload.size() - from);
    if (bytes == 0) break;
    const Region* const region = regions_.local(piece.lkey);
    if (region == nullptr || !region->covers(to.pd, piece.addr, bytes, IBV_ACCESS_LOCAL_WRITE)) return false;
    std::memcpy(reinterpret_cast<void*>(piece.addr), payload.data() + from, bytes);
    from += bytes;
  }
  return true;
}

}  // namespace tutti::provider
