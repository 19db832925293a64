#include "tests/verbs/provider/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti::provider {
namespace {

constexpr int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int to_receive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int to_send = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC;

// Returns the attributes that a transition needs, or 0 if there is no such transition.
int needed(ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_ERR || to == IBV_QPS_RESET) return IBV_QP_STATE;
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) return to_init;
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) return to_receive;
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) return to_send;
  return 0;
}

// Returns a failed completion. Only four of its fields are defined, so the others are filled with nonsense.
ibv_wc failed(std::uint64_t id, ibv_wc_status status, std::uint32_t pair) {
  ibv_wc completion;
  std::memset(&completion, 0xa5, sizeof completion);
  completion.wr_id = id;
  completion.status = status;
  completion.qp_num = pair;
  completion.vendor_err = 0x81;
  return completion;
}

ibv_wc_opcode outcome_of(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_BIND_MW) return IBV_WC_BIND_MW;
  if (opcode == IBV_WR_LOCAL_INV) return IBV_WC_LOCAL_INV;
  const bool write = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  return write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
}

bool is_known(ibv_wr_opcode opcode) {
  constexpr ibv_wr_opcode known[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                     IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
                                     IBV_WR_BIND_MW,    IBV_WR_LOCAL_INV};
  return std::ranges::find(known, opcode) != std::end(known);
}

std::size_t bytes_of(const ibv_sge* pieces, int count) {
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += pieces[i].length;
  return bytes;
}

std::vector<std::byte> gathered(const ibv_sge* pieces, int count) {
  std::vector<std::byte> payload;
  for (int i = 0; i < count; ++i) {
    const auto* const begin = reinterpret_cast<const std::byte*>(pieces[i].addr);
    payload.insert(payload.end(), begin, begin + pieces[i].length);
  }
  return payload;
}

}  // namespace

QueuePair::QueuePair(ibv_pd& domain, const ibv_qp_init_attr& wanted, std::uint32_t number, Record& record)
    : ibv_qp{}, record_(record), limits_(wanted.cap), signal_all_(wanted.sq_sig_all != 0) {
  context = domain.context;
  pd = &domain;
  qp_context = wanted.qp_context;
  send_cq = wanted.send_cq;
  recv_cq = wanted.recv_cq;
  qp_num = number;
  qp_type = wanted.qp_type;
  state = IBV_QPS_RESET;
}

int QueuePair::modify(const ibv_qp_attr& attributes, int mask) {
  if (const int error = check(attributes, mask); error != 0) return error;
  const ibv_qp_state next = attributes.qp_state;
  take(attributes, mask);
  if (next == IBV_QPS_RESET) {
    reset();
  } else if (next == IBV_QPS_ERR) {
    break_down();
  } else {
    state = next;
  }
  return 0;
}

int QueuePair::check(const ibv_qp_attr& attributes, int mask) const {
  if ((mask & IBV_QP_STATE) == 0) return EINVAL;
  const ibv_qp_state next = attributes.qp_state;
  const int wanted = needed(state, next);
  if (wanted == 0 || (mask & wanted) != wanted) return EINVAL;
  Device& card = card_of(context);
  if (next == IBV_QPS_INIT) return card.port(attributes.port_num) == nullptr ? EINVAL : 0;
  if (next != IBV_QPS_RTR) return 0;
  const Port& port = *card.port(attributes_.port_num);
  if (attributes.path_mtu > port.mtu) return EINVAL;
  if (port.link_layer != IBV_LINK_LAYER_ETHERNET) return 0;
  const ibv_ah_attr& path = attributes.ah_attr;
  if (path.is_global == 0 || path.port_num != attributes_.port_num) return EINVAL;
  if (path.grh.sgid_index >= port.gids.size()) return EINVAL;
  return port.gids[path.grh.sgid_index].error;
}

void QueuePair::take(const ibv_qp_attr& attributes, int mask) {
  if ((mask & IBV_QP_PORT) != 0) attributes_.port_num = attributes.port_num;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) attributes_.qp_access_flags = attributes.qp_access_flags;
  if ((mask & IBV_QP_AV) != 0) attributes_.ah_attr = attributes.ah_attr;
  if ((mask & IBV_QP_PATH_MTU) != 0) attributes_.path_mtu = attributes.path_mtu;
  if ((mask & IBV_QP_DEST_QPN) != 0) attributes_.dest_qp_num = attributes.dest_qp_num;
  if ((mask & IBV_QP_RQ_PSN) != 0) attributes_.rq_psn = attributes.rq_psn;
  if ((mask & IBV_QP_SQ_PSN) != 0) attributes_.sq_psn = attributes.sq_psn;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) attributes_.min_rnr_timer = attributes.min_rnr_timer;
  if ((mask & IBV_QP_TIMEOUT) != 0) attributes_.timeout = attributes.timeout;
  if ((mask & IBV_QP_RETRY_CNT) != 0) attributes_.retry_cnt = attributes.retry_cnt;
  if ((mask & IBV_QP_RNR_RETRY) != 0) attributes_.rnr_retry = attributes.rnr_retry;
}

void QueuePair::reset() {
  to_send_.clear();
  to_receive_.clear();
  sends_held_ = receives_held_ = 0;
  silent_ = 0;
  state = IBV_QPS_RESET;
}

int QueuePair::post(const ibv_send_wr& request) {
  if (state != IBV_QPS_RTS && state != IBV_QPS_ERR) return EINVAL;
  if (sends_held_ >= limits_.max_send_wr) return ENOMEM;
  if (request.num_sge < 0 || static_cast<std::uint32_t>(request.num_sge) > limits_.max_send_sge)
    return EINVAL;
  const bool write = request.opcode == IBV_WR_RDMA_WRITE || request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (!is_known(request.opcode)) return EINVAL;
  SendRequest posted;
  posted.id = request.wr_id;
  posted.opcode = request.opcode;
  posted.flags = request.send_flags;
  posted.immediate = request.imm_data;
  if (write) {
    posted.address = request.wr.rdma.remote_addr;
    posted.key = request.wr.rdma.rkey;
  } else if (request.opcode == IBV_WR_BIND_MW) {
    posted.window = request.bind_mw.mw;
    posted.key = request.bind_mw.rkey;
    posted.part = request.bind_mw.bind_info;
    ++record_.traffic.binds;
  } else if (request.opcode == IBV_WR_LOCAL_INV) {
    posted.key = request.invalidate_rkey;
    ++record_.traffic.invalidations;
  }
  if ((posted.flags & IBV_SEND_INLINE) != 0) {
    if (bytes_of(request.sg_list, request.num_sge) > limits_.max_inline_data) return ENOMEM;
    posted.payload = gathered(request.sg_list, request.num_sge);
    ++record_.traffic.inlined;
  } else {
    posted.pieces.assign(request.sg_list, request.sg_list + request.num_sge);
  }
  ++record_.traffic.sends;
  if (write) {
    ++record_.traffic.writes;
    record_.last_write = {qp_num, posted.address, posted.key};
  }
  ++sends_held_;
  to_send_.push_back(std::move(posted));
  if (state == IBV_QPS_ERR) flush();
  return 0;
}

int QueuePair::post(const ibv_recv_wr& request) {
  if (state == IBV_QPS_RESET) return EINVAL;
  if (receives_held_ >= limits_.max_recv_wr) return ENOMEM;
  if (request.num_sge < 0 || static_cast<std::uint32_t>(request.num_sge) > limits_.max_recv_sge)
    return EINVAL;
  ++record_.traffic.receives;
  ++receives_held_;
  to_receive_.push_back({request.wr_id, {request.sg_list, request.sg_list + request.num_sge}});
  if (state == IBV_QPS_ERR) flush();
  return 0;
}

void QueuePair::end_send(ibv_wc_status status) {
  const SendRequest ended = std::move(to_send_.front());
  to_send_.pop_front();
  if (status == IBV_WC_SUCCESS && !signal_all_ && (ended.flags & IBV_SEND_SIGNALED) == 0) {
    ++silent_;
    return;
  }
  ibv_wc completion{};
  if (status == IBV_WC_SUCCESS) {
    completion.wr_id = ended.id;
    completion.opcode = outcome_of(ended.opcode);
    completion.qp_num = qp_num;
  } else {
    completion = failed(ended.id, status, qp_num);
  }
  add(sends(), completion, {qp_num, silent_ + 1, 0}, false);
  silent_ = 0;
  if (status != IBV_WC_SUCCESS) break_down();
}

void QueuePair::end_receive(const ibv_wc& completion, bool solicited) {
  ibv_wc ended = completion;
  ended.wr_id = to_receive_.front().id;
  ended.qp_num = qp_num;
  to_receive_.pop_front();
  add(receives(), ended, {qp_num, 0, 1}, solicited);
}

void QueuePair::fail_receive(ibv_wc_status status) {
  add(receives(), failed(to_receive_.front().id, status, qp_num), {qp_num, 0, 1}, false);
  to_receive_.pop_front();
  break_down();
}

void QueuePair::break_down() {
  state = IBV_QPS_ERR;
  flush();
}

void QueuePair::flush() {
  for (; !to_send_.empty(); to_send_.pop_front(), silent_ = 0) {
    add(sends(), failed(to_send_.front().id, IBV_WC_WR_FLUSH_ERR, qp_num), {qp_num, silent_ + 1, 0}, false);
  }
  for (; !to_receive_.empty(); to_receive_.pop_front()) {
    add(receives(), failed(to_receive_.front().id, IBV_WC_WR_FLUSH_ERR, qp_num), {qp_num, 0, 1}, false);
  }
}

void QueuePair::free(const CompletionQueue::Freed& freed) {
  // Requests from before a reset no longer occupy the queues, but their completions may still be polled.
  sends_held_ -= std::min(sends_held_, static_cast<std::uint32_t>(freed.sends));
  receives_held_ -= std::min(receives_held_, static_cast<std::uint32_t>(freed.receives));
}

void QueuePair::add(CompletionQueue& queue, const ibv_wc& completion, const CompletionQueue::Freed& freed,
                    bool solicited) {
  if (!queue.add(completion, freed, solicited)) record_.mistakes.emplace_back("a completion queue is full");
}

}  // namespace tutti::provider
