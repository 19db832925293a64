#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error_text.h"
#include "core/random.h"
#include "transport/verbs/pipe.h"

// This file makes and connects the queue pair of a pipe.
namespace tutti::verbs {
namespace {

// The send queue has room for this many requests, besides those that use slots and those for windows.
constexpr std::uint32_t spare_depth = 48;
// Packets of up to this many bytes (a header and a small payload) are sent inline. If the device refuses the
// first size, it is asked for the next one.
constexpr std::array<std::uint32_t, 3> inline_sizes = {256, 72, 0};
constexpr std::uint32_t sequence_mask = 0xffffff;
// If there is no receive for a packet, the peer sends the packet again after this time. The code 12 means
// 0.64 ms.
constexpr std::uint8_t receiver_not_ready_timer = 12;
constexpr std::uint8_t retry_for_ever = 7;
constexpr std::uint8_t hop_limit = 255;
// The size of the largest packet is a multiple of this number, so that no element is split.
constexpr std::uint32_t alignment = 64;
// No peer has more receive slots than this.
constexpr std::uint32_t most_slots = 65536;

}  // namespace

Pipe::Pipe(Rail& rail, const Memory& memory, const PipeOptions& options, const Gid& gid, PipeEvents& events)
    : rail_(rail), memory_(memory), options_(options), gid_(gid), events_(&events), windows_(rail.domain()) {}

std::uint64_t Pipe::most_requests(std::uint32_t slots) {
  return slots + slots / 2 + spare_depth + Windows::most_requests;
}

Result<std::unique_ptr<Pipe>> Pipe::create(Rail& rail, const Memory& memory, const PipeOptions& options,
                                           const Gid& gid, PipeEvents& events) {
  auto pipe = std::unique_ptr<Pipe>(new Pipe(rail, memory, options, gid, events));
  auto pool = Pool::create(rail.domain(), options.slots, options.slot_bytes);
  if (!pool.ok()) return pool.status();
  pipe->pool_ = *std::move(pool);
  Status made = pipe->create_queue_pair();
  if (made.ok()) made = pipe->move_to_init();
  if (made.ok()) made = pipe->post_receives();
  if (!made.ok()) return made;
  return pipe;
}

Status Pipe::create_queue_pair() {
  depth_ = pool_->send_slots() + spare_depth + Windows::most_requests;
  posted_.resize(depth_);
  for (const std::uint32_t inline_bytes : inline_sizes) {
    ibv_qp_init_attr attributes = {};
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {depth_, pool_->receive_slots(), 2, 1, inline_bytes};
    queue_pair_ = rail_.create_queue_pair(attributes, *this);
    if (queue_pair_ == nullptr) continue;
    max_inline_ = attributes.cap.max_inline_data;
    std::array<unsigned char, 4> random;
    fill_random(random);
    std::memcpy(&first_sequence_, random.data(), random.size());
    first_sequence_ &= sequence_mask;
    return {};
  }
  return Status(Code::resource_exhausted, "the device gives no queue pair: " + error_text(errno));
}

Status Pipe::post_receives() {
  for (std::uint32_t slot = 0; slot < pool_->receive_slots(); ++slot) {
    if (!post_receive(slot)) return Status(Code::resource_exhausted, "the device takes no receives");
  }
  return {};
}

bool Pipe::post_receive(std::uint32_t slot) {
  const std::span<std::byte> place = pool_->receive_slot(slot);
  ibv_sge piece = {reinterpret_cast<std::uintptr_t>(place.data()), static_cast<std::uint32_t>(place.size()),
                   pool_->key()};
  ibv_recv_wr request = {};
  request.wr_id = receive_bit | slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* failed = nullptr;
  return ibv_post_recv(queue_pair_, &request, &failed) == 0;
}

Status Pipe::modify(ibv_qp_attr& attributes, int mask, const char* state) {
  const int error = rail_.functions().modify_qp(queue_pair_, &attributes, mask);
  if (error == 0) return {};
  return Status(Code::unsupported, "the queue pair cannot become ready to " + std::string(state) + " with " +
                                       std::string(to_string(gid_.kind)) + " address " + gid_.text() + ": " +
                                       error_text(error));
}

Status Pipe::move_to_init() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = rail_.port().number;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  return modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "start");
}

Status Pipe::move_to_receive(const End& theirs) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = std::min(rail_.port().attributes.active_mtu, static_cast<ibv_mtu>(theirs.mtu));
  attributes.dest_qp_num = theirs.queue_pair;
  attributes.rq_psn = theirs.sequence & sequence_mask;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = receiver_not_ready_timer;
  ibv_ah_attr& path = attributes.ah_attr;
  path.port_num = rail_.port().number;
  path.sl = static_cast<std::uint8_t>(options_.settings.service_level);
  path.dlid = theirs.lid;
  if (rail_.port().is_ethernet()) {
    path.is_global = 1;
    std::memcpy(path.grh.dgid.raw, theirs.gid.data(), theirs.gid.size());
    path.grh.sgid_index = static_cast<std::uint8_t>(gid_.index);
    path.grh.hop_limit = hop_limit;
    path.grh.traffic_class = static_cast<std::uint8_t>(options_.settings.traffic_class);
  }
  return modify(attributes,
                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                "receive");
}

Status Pipe::move_to_send() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = static_cast<std::uint8_t>(options_.settings.timeout);
  // Soft-RoCE never gives up if it may send a packet again 7 times.
  const int most = rail_.port().is_soft_roce() ? 6 : 7;
  attributes.retry_cnt = static_cast<std::uint8_t>(std::min(options_.settings.retries, most));
  attributes.rnr_retry = retry_for_ever;
  attributes.sq_psn = first_sequence_;
  attributes.max_rd_atomic = 1;
  return modify(attributes,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                    IBV_QP_MAX_QP_RD_ATOMIC,
                "send");
}

End Pipe::end() const {
  End end;
  end.queue_pair = queue_pair_->qp_num;
  end.sequence = first_sequence_;
  end.slots = pool_->receive_slots();
  end.slot_bytes = pool_->slot_bytes();
  std::copy(std::begin(gid_.value.raw), std::end(gid_.value.raw), end.gid.begin());
  end.lid = rail_.port().attributes.lid;
  end.mtu = static_cast<std::uint8_t>(rail_.port().attributes.active_mtu);
  end.kind = static_cast<std::uint8_t>(gid_.kind);
  return end;
}

Status Pipe::connect(const End& theirs) {
  if (theirs.slots < Pool::least_slots || theirs.slots > most_slots || theirs.slot_bytes < 2 * alignment ||
      theirs.mtu < IBV_MTU_256 || theirs.mtu > IBV_MTU_4096 ||
      theirs.kind != static_cast<std::uint8_t>(gid_.kind))
    return Status(Code::protocol_error, "it offers an impossible queue pair");
  theirs_ = theirs;
  if (options_.shared) kept_.resize(theirs.slots);
  packet_bytes_ = std::min(theirs.slot_bytes, pool_->slot_bytes()) / alignment * alignment;
  const Status receives = move_to_receive(theirs);
  return receives.ok() ? move_to_send() : receives;
}

}  // namespace tutti::verbs
