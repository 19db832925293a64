#include <algorithm>
#include <utility>

#include "transport/stream/sender.h"

// This file sends messages for which the receiver has granted its memory. Each frame has two parts: a remote
// write, and a header that tells the receiver about the write.
namespace tutti {

bool StreamSender::grant(std::uint32_t id, const Grant& grant) {
  if (!control(FrameType::grant, id)) return false;
  control_.back().grant = grant;
  return true;
}

const char* StreamSender::on_grant(std::uint32_t id, const Grant& grant) {
  if (slot_index(id) >= slots_.size()) return "a grant for a message that was never announced";
  Slot* const slot = find_slot(id);
  if (slot == nullptr) return nullptr;
  SendOp& op = *slot->op;
  if (op.state != requested && slot->granted == 0) return "a grant for a message that it had cleared";
  if (grant.offset != slot->granted) return "a grant at a wrong offset";
  if (grant.bytes == 0 || grant.bytes > op.header.bytes - grant.offset) return "a grant of wrong length";
  if (grant.place.address + grant.bytes < grant.bytes) return "a grant at an impossible address";
  if (slot->grants.size() >= StreamLimits::max_grants) return "too many grants";
  slot->granted += grant.bytes;
  slot->grants.push_back(grant);
  if (op.state == requested) {
    --unanswered_;
    register_briefly(op);
  }
  if (op.state != active) active_.push_back(op);
  op.state = active;
  return nullptr;
}

// Registers the memory of a message, if that is faster than copying it. It stays registered until the
// operation ends.
void StreamSender::register_briefly(const SendOp& op) {
  const std::span<const std::byte> memory(op.data, op.header.bytes);
  if (remote_ == nullptr || remote_->is_registered(memory)) return;
  if (auto added = remote_->add_briefly(memory, RemoteMemory::Use::sending))
    registered_.push_back({&op, std::move(added)});
}

const RegisteredMemory* StreamSender::registered(const SendOp& op) const {
  const auto found = std::ranges::find(registered_, &op, &Registered::op);
  return found == registered_.end() ? nullptr : found->memory.get();
}

// Returns the frame that writes the next piece of a granted message.
StreamSender::Frame& StreamSender::next_write(SendOp& op, Slot& slot) {
  Grant& grant = slot.grants.front();
  const std::uint64_t bytes = std::min<std::uint64_t>(grant.bytes, limits_.fragment);
  FrameHeader header;
  header.type = FrameType::written;
  header.id = op.id;
  header.offset = op.progress;
  header.message.bytes = bytes;
  Frame& frame = take_frame(header);
  frame.payload = {op.data + op.progress, bytes};
  frame.op = &op;
  frame.route = PayloadRoute::remote_write;
  frame.place = grant.place;
  frame.registered = registered(op);
  op.progress += bytes;
  grant.bytes -= bytes;
  grant.place.address += bytes;
  if (grant.bytes == 0) slot.grants.erase(slot.grants.begin());
  if (op.progress == op.header.bytes) {
    op.state = leaving;
    release_slot(op.id);
  } else if (slot.grants.empty()) {
    op.state = waiting;
  } else {
    active_.push_back(op);
  }
  return frame;
}

// Completes an operation that is in none of the lists and has no slot. If remote writes still read its
// memory, the operation completes when these writes have ended.
void StreamSender::give_up(SendOp& op, const Status& why, bool keep_frames) {
  bool under_way = false;
  for (Frame* frame = in_pipe_.front(); frame != nullptr; frame = frame->next) {
    if (frame->op != &op || frame->route != PayloadRoute::remote_write) continue;
    frame->op = nullptr;
    frame->ended = &op;
    under_way = true;
  }
  if (under_way) {
    op.state = ending;
    ending_.push_back({&op, why});
  } else {
    detach_frames(op, keep_frames);
    finish(op, why);
  }
}

void StreamSender::end_if_written(const SendOp& op) {
  for (const Frame* frame = in_pipe_.front(); frame != nullptr; frame = frame->next) {
    if (frame->route == PayloadRoute::remote_write && frame->op == nullptr && frame->ended == &op) return;
  }
  const auto found = std::ranges::find(ending_, &op, &Ending::op);
  const Ending ended = std::move(*found);
  ending_.erase(found);
  finish(*ended.op, ended.why);
}

void StreamSender::end_writes() {
  while (!ending_.empty()) {
    const Ending ended = std::move(ending_.back());
    ending_.pop_back();
    finish(*ended.op, ended.why);
  }
}

}  // namespace tutti
