#include <algorithm>

#include "transport/verbs/pipe.h"
#include "transport/verbs/rail_memory.h"

// These functions serve a pipe that is one of several pipes between two ranks (a `Bundle`).
namespace tutti::verbs {

Pipe::Outcome Pipe::write_payload(OutgoingFrame& frame) {
  if (!post_payload(frame)) {
    full_ = true;
    return Outcome::full;
  }
  ++reading_;
  return Outcome::reading;
}

// Posts the writes of a payload, as far as there is room. Only the last write reports that the payload has
// been written, since the device keeps the order of writes. Returns whether everything is posted.
bool Pipe::post_payload(OutgoingFrame& frame) {
  const std::size_t all = frame.payload.size();
  const RegisteredMemory* const own = part_of(frame.registered, options_.our_rail);
  if (const Region* const region = memory_.region_of(frame.payload, own);
      region != nullptr && frame.written == 0) {
    if (queue_pair_ == nullptr || !has_room(1)) return false;
    ibv_sge piece = {reinterpret_cast<std::uintptr_t>(frame.payload.data()), static_cast<std::uint32_t>(all),
                     region->local_key()};
    ibv_send_wr request = write_request(frame, false);
    request.sg_list = &piece;
    request.num_sge = 1;
    return post(request, {.reading = &frame});
  }
  while (frame.written < all) {
    if (queue_pair_ == nullptr || !has_room(1)) return false;
    const std::size_t bytes = std::min<std::size_t>(all - frame.written, pool_->slot_bytes());
    const bool last = frame.written + bytes == all;
    ibv_send_wr request = write_request(frame, false);
    const Posted posted = {.reading = last ? &frame : nullptr};
    if (!post_copy(request, {frame.payload.subspan(frame.written, bytes)}, posted)) return false;
    frame.written += bytes;
  }
  return true;
}

bool Pipe::send_again(std::span<const std::byte> bytes) {
  const bool ready = queue_pair_ != nullptr && credit() > credit_reserve && has_room(1);
  if (ready && send_packet({bytes})) return true;
  full_ = true;
  return false;
}

std::optional<std::deque<Packet>> Pipe::not_taken(std::uint32_t count) {
  if (count - acknowledged_ > sent_ - acknowledged_) return std::nullopt;
  return kept_.take(count, sent_);
}

}  // namespace tutti::verbs
