#include "transport/verbs/pipe.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <arpa/inet.h>

#include "core/error_text.h"
#include "transport/verbs/rail_memory.h"

namespace tutti::verbs {
namespace {

// A request that frees nothing when it ends need not report its completion. But at least one in this many
// does.
constexpr std::uint64_t signal_every = 16;

ibv_sge piece_of(std::span<const std::byte> bytes, std::uint32_t key) {
  return {reinterpret_cast<std::uintptr_t>(bytes.data()), static_cast<std::uint32_t>(bytes.size()), key};
}

}  // namespace

std::span<std::byte> Pipe::free_slot() const {
  if (slots_in_use() >= pool_->send_slots()) return {};
  return pool_->send_slot(slots_taken_ % pool_->send_slots());
}

bool Pipe::post(ibv_send_wr& request, const Posted& posted) {
  request.wr_id = next_;
  posted_[next_ % depth_] = posted;
  ++unsignaled_;
  if (posted != Posted{} || unsignaled_ >= signal_every) {
    request.send_flags |= IBV_SEND_SIGNALED;
    unsignaled_ = 0;
  }
  ibv_send_wr* failed = nullptr;
  if (const int error = ibv_post_send(queue_pair_, &request, &failed)) {
    broken(Code::peer_lost, "a request cannot be posted: " + error_text(error));
    return false;
  }
  ++next_;
  if (posted.slot) ++slots_taken_;
  return true;
}

// Posts a request whose data are `parts`. Small data are sent inline, and larger data are copied into a slot.
// Returns false if there is no slot, or if the request cannot be posted.
bool Pipe::post_copy(ibv_send_wr& request, const Parts& parts, Posted posted) {
  std::array<ibv_sge, 2> pieces = {};
  request.sg_list = pieces.data();
  const std::size_t bytes = parts[0].size() + parts[1].size();
  if (bytes <= max_inline_) {
    request.send_flags = IBV_SEND_INLINE;
    for (const std::span<const std::byte> part : parts) {
      if (!part.empty()) pieces[static_cast<std::size_t>(request.num_sge++)] = piece_of(part, 0);
    }
    return post(request, posted);
  }
  const std::span<std::byte> slot = free_slot();
  if (slot.empty()) return false;
  std::byte* at = slot.data();
  for (const std::span<const std::byte> part : parts) at = std::copy(part.begin(), part.end(), at);
  pieces[0] = piece_of(slot.first(bytes), pool_->key());
  request.num_sge = 1;
  posted.slot = true;
  return post(request, posted);
}

bool Pipe::send_packet(const Parts& parts) {
  ibv_send_wr request = {};
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.imm_data = htonl(dealt_with_);
  if (!post_copy(request, parts, {})) return false;
  kept_.keep(sent_, parts);
  ++sent_;
  told_ = dealt_with_;
  return true;
}

Pipe::Outcome Pipe::write(OutgoingFrame& frame) {
  const Outcome outcome = frame.route == PayloadRoute::remote_write ? write_remotely(frame) : send(frame);
  full_ = full_ || outcome == Outcome::full;
  return outcome;
}

// Sends a frame as packets: first its header and the beginning of its payload, then the rest of the payload.
Pipe::Outcome Pipe::send(OutgoingFrame& frame) {
  const std::size_t header = frame.header.size(), all = header + frame.payload.size();
  while (frame.written < all) {
    if (queue_pair_ == nullptr || credit() <= credit_reserve || !has_room(1)) return Outcome::full;
    const std::size_t bytes = std::min<std::size_t>(all - frame.written, packet_bytes_);
    Parts parts;
    if (frame.written == 0) parts[0] = frame.header;
    parts[1] = frame.payload.subspan(std::max(frame.written, header) - header, bytes - parts[0].size());
    if (!send_packet(parts)) return Outcome::full;
    frame.written += bytes;
  }
  return Outcome::left;
}

// Writes the payload of a frame into memory that the peer has granted. The last write takes the place of the
// header, since the peer knows everything that the header says except the id of the message.
Pipe::Outcome Pipe::write_remotely(OutgoingFrame& frame) {
  if (const Region* const region = memory_.region_of(frame.payload, frame.registered);
      region != nullptr && frame.written == 0)
    return write_in_place(frame, region->local_key());
  while (frame.written < frame.payload.size()) {
    const std::size_t left = frame.payload.size() - frame.written;
    const std::size_t bytes = std::min<std::size_t>(left, pool_->slot_bytes());
    const bool last = bytes == left;
    if (queue_pair_ == nullptr || !has_room(1) || (last && credit() <= credit_reserve)) return Outcome::full;
    ibv_send_wr request = write_request(frame, last);
    if (!post_copy(request, {frame.payload.subspan(frame.written, bytes)}, {})) return Outcome::full;
    frame.written += bytes;
    if (last) ++sent_;
  }
  return Outcome::left;
}

Pipe::Outcome Pipe::write_in_place(OutgoingFrame& frame, std::uint32_t key) {
  if (queue_pair_ == nullptr || credit() <= credit_reserve || !has_room(1)) return Outcome::full;
  if (reading_ == most_reading) return Outcome::full;
  ibv_sge piece = piece_of(frame.payload, key);
  ibv_send_wr request = write_request(frame, true);
  request.sg_list = &piece;
  request.num_sge = 1;
  if (!post(request, {.reading = &frame})) return Outcome::full;
  ++sent_;
  ++reading_;
  return Outcome::reading;
}

// The last write of a piece tells the peer the id of the message.
ibv_send_wr Pipe::write_request(const OutgoingFrame& frame, bool last) const {
  ibv_send_wr request = {};
  request.opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  if (last) request.imm_data = htonl(id_of(frame.header));
  request.wr.rdma.remote_addr = frame.place.address + frame.written;
  request.wr.rdma.rkey = key_of(frame.place, options_.their_rail);
  return request;
}

// Tells the peer how many of its packets this side has dealt with, if that number has grown by half of the
// receive slots since the peer was last told.
void Pipe::return_credit() {
  if (dealt_with_ - told_ >= pool_->receive_slots() / 2) probe();
}

void Pipe::on_completion(const ibv_wc& completion) {
  // Of a failed completion, only the number, the status, the queue pair and the vendor's error are valid.
  if (completion.status != IBV_WC_SUCCESS) return fail(completion);
  if ((completion.wr_id & receive_bit) != 0) {
    received(static_cast<std::uint32_t>(completion.wr_id & ~receive_bit), completion);
  } else {
    retire(completion.wr_id);
  }
  if (queue_pair_ == nullptr) return;
  if (std::exchange(full_, false)) events_->on_room();
  if (queue_pair_ != nullptr) return_credit();
}

void Pipe::fail(const ibv_wc& completion) {
  const bool refused =
      completion.status == IBV_WC_REM_ACCESS_ERR || completion.status == IBV_WC_REM_INV_REQ_ERR;
  broken(refused ? Code::protocol_error : Code::peer_lost,
         std::string(rail_.functions().wc_status_str(completion.status)) + " (status " +
             std::to_string(completion.status) + ", vendor error " + std::to_string(completion.vendor_err) +
             ")");
}

void Pipe::received(std::uint32_t slot, const ibv_wc& completion) {
  const bool piece = completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM && !options_.shared;
  const bool packet = completion.opcode == IBV_WC_RECV && completion.byte_len <= pool_->slot_bytes();
  if (slot >= pool_->receive_slots() || (completion.wc_flags & IBV_WC_WITH_IMM) == 0 || (!piece && !packet))
    return broken(Code::protocol_error, "it sent a packet that tutti does not send");
  const std::uint32_t immediate = ntohl(completion.imm_data);
  if (packet && immediate - acknowledged_ > sent_ - acknowledged_)
    return broken(Code::protocol_error, "it claims to have received packets that were never sent");
  ++taken_;
  if (packet) {
    acknowledged_ = immediate;
    events_->on_packet(pool_->receive_slot(slot).first(completion.byte_len));
  } else {
    events_->on_piece(immediate);
  }
  if (queue_pair_ == nullptr) return;
  if (post_receive(slot)) {
    ++dealt_with_;
  } else {
    broken(Code::peer_lost, "a receive cannot be posted");
  }
}

// Requests end in order, so the completion of one request shows that all earlier ones have ended, too.
void Pipe::retire(std::uint64_t request) {
  while (retired_ <= request && retired_ < next_) {
    const Posted ended = posted_[retired_++ % depth_];
    if (ended.slot) ++slots_freed_;
    if (ended.reading != nullptr) {
      --reading_;
      events_->on_written(*ended.reading);
    } else if (ended.bound != nullptr) {
      const Windows::Window& window = *ended.bound;
      events_->on_permitted(window.permit, {.address = window.address, .key = window.raw->rkey});
    } else if (ended.revoked != nullptr) {
      revoked(*ended.revoked);
    }
    if (queue_pair_ == nullptr) return;
  }
}

void Pipe::broken(Code code, const std::string& why) {
  if (queue_pair_ != nullptr) events_->on_pipe_broken(code, why);
}

void Pipe::on_queue_error(const std::string& why) { broken(Code::peer_lost, why); }

// The windows are destroyed first, since Soft-RoCE cannot destroy a queue pair that has windows. Before that,
// the queue pair enters the error state, in which it takes no more packets. Otherwise a peer that still
// writes would be told that its key is wrong.
void Pipe::close() {
  if (queue_pair_ == nullptr) return;
  if (!windows_.empty()) {
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_ERR;
    rail_.functions().modify_qp(queue_pair_, &attributes, IBV_QP_STATE);
    windows_.clear();
  }
  rail_.destroy_queue_pair(std::exchange(queue_pair_, nullptr));
}

Pipe::~Pipe() { close(); }

}  // namespace tutti::verbs
