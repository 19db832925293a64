#include "transport/stream/sender.h"

#include <cstring>

namespace tutti {
namespace {

// This many announcements are sent before a waiting fragment has its turn.
constexpr std::uint32_t announcements_per_fragment = 16;

}  // namespace

void StreamSender::push(SendOp& op) {
  op.state = queued;
  op.progress = 0;
  queue_.push_back(op);
}

bool StreamSender::cancel(SendOp& op, const Status& why) {
  bool room = true;
  switch (op.state) {
    case queued:
      queue_.remove(op);
      break;
    case requested:
      --unanswered_;
      room = control(FrameType::cancel, op.id, why.code());
      release_slot(op.id);
      break;
    case active:
      active_.remove(op);
      [[fallthrough]];
    case waiting:
      room = control(FrameType::cancel, op.id, why.code());
      release_slot(op.id);
      break;
    case leaving:
      break;
    default:
      return true;
  }
  give_up(op, why, true);
  return room;
}

bool StreamSender::control(FrameType type, std::uint32_t id, Code code) {
  if (control_.size() - control_first_ >= StreamLimits::max_control) return false;
  control_.push_back(Control{type, code, id, {}});
  return true;
}

void StreamSender::abort(std::uint32_t context, const Status& why) {
  if (aborts_.size() < StreamLimits::max_aborts) aborts_.push_back(Abort{context, why});
}

void StreamSender::hand_over(Channel& to) {
  for (; !aborts_.empty(); aborts_.pop_front()) to.send_abort(aborts_.front().context, aborts_.front().why);
  while (SendOp* op = queue_.pop_front()) {
    op->state = idle;
    to.send(*op);
  }
}

const char* StreamSender::on_clear(std::uint32_t id) {
  if (slot_index(id) >= slots_.size()) return "a clear for a message that was never announced";
  const Slot* const slot = find_slot(id);
  if (slot == nullptr) return nullptr;
  if (slot->op->state != requested) return "a second clear for a message";
  --unanswered_;
  slot->op->state = active;
  active_.push_back(*slot->op);
  return nullptr;
}

const char* StreamSender::on_refuse(std::uint32_t id, const Status& why) {
  if (slot_index(id) >= slots_.size()) return "a refusal of a message that was never announced";
  const Slot* const slot = find_slot(id);
  if (slot == nullptr) return nullptr;
  SendOp& op = *slot->op;
  if (op.state == requested) --unanswered_;
  if (op.state == active) active_.remove(op);
  release_slot(id);
  const bool room = control(FrameType::cancel, id, why.code());
  if (why.ok()) ++counters_.messages_sent;
  give_up(op, why, true);
  return room ? nullptr : "frames, but does not read ours";
}

const char* StreamSender::on_credit(std::uint64_t units) {
  if (units > credit_used_) return "more credit than was used";
  credit_used_ -= units;
  return nullptr;
}

bool StreamSender::can_announce() const {
  const SendOp* op = queue_.front();
  if (op == nullptr) return false;
  if (is_eager(*op)) {
    return credit_used_ + StreamLimits::eager_cost(static_cast<std::uint32_t>(op->header.bytes)) <=
           limits_.credit;
  }
  return unanswered_ < StreamLimits::max_unanswered &&
         (!free_slots_.empty() || slots_.size() < StreamLimits::max_large);
}

bool StreamSender::has_frames() const {
  return urgent() || !active_.empty() || goodbye_ == Goodbye::queued || can_announce();
}

OutgoingFrame* StreamSender::next_frame() {
  // An abort is sent before the cancels that it causes. If a cancel arrived first, the peer would take the
  // cancel for the cause of the failure.
  if (!aborts_.empty()) return next_abort();
  if (control_first_ != control_.size() || credit_is_due()) return next_control();
  const bool fragment_turn = !active_.empty() && announced_in_a_row_ >= announcements_per_fragment;
  if (!fragment_turn && can_announce()) return next_announcement();
  if (!active_.empty()) return next_fragment();
  if (goodbye_ != Goodbye::queued) return nullptr;
  goodbye_ = Goodbye::taken;
  Frame& frame = take_frame(FrameHeader{});
  frame.goodbye = true;
  return &frame;
}

StreamSender::Frame& StreamSender::take_frame(const FrameHeader& header) {
  if (free_frames_ == nullptr) {
    free_frames_ = &frames_.emplace_back();
  }
  Frame& frame = *free_frames_;
  free_frames_ = frame.next;
  encode(header, frame.header);
  frame.payload = {};
  frame.op = nullptr;
  frame.written = 0;
  frame.route = PayloadRoute::behind_header;
  frame.registered = nullptr;
  frame.stripe = 0;
  frame.stripe_written = 0;
  frame.goodbye = false;
  in_pipe_.push_back(frame);
  return frame;
}

OutgoingFrame* StreamSender::next_control() {
  FrameHeader header;
  if (control_first_ == control_.size()) {
    header.type = FrameType::credit;
    header.offset = credit_owed_;
    credit_owed_ = 0;
    return &take_frame(header);
  }
  const Control& entry = control_[control_first_++];
  if (entry.type == FrameType::grant) header = to_header(entry.id, entry.grant);
  header.type = entry.type;
  header.code = entry.code;
  header.id = entry.id;
  if (control_first_ == control_.size()) {
    control_.clear();
    control_first_ = 0;
  } else if (control_first_ >= StreamLimits::max_control) {
    control_.erase(control_.begin(), control_.begin() + static_cast<std::ptrdiff_t>(control_first_));
    control_first_ = 0;
  }
  return &take_frame(header);
}

OutgoingFrame* StreamSender::next_abort() {
  const Abort abort = std::move(aborts_.front());
  aborts_.pop_front();
  const std::string& text = abort.why.message();
  const std::size_t length = std::min<std::size_t>(text.size(), StreamLimits::max_abort_text);
  FrameHeader header;
  header.type = FrameType::abort;
  header.code = abort.why.code();
  header.payload = static_cast<std::uint32_t>(length);
  header.id = static_cast<std::uint32_t>(abort.why.peer() + 1);
  header.message.tag.context = abort.context;
  Frame& frame = take_frame(header);
  frame.copy = std::make_unique<std::byte[]>(length);
  std::memcpy(frame.copy.get(), text.data(), length);
  frame.payload = {frame.copy.get(), length};
  return &frame;
}

OutgoingFrame* StreamSender::next_announcement() {
  SendOp& op = *queue_.pop_front();
  ++announced_in_a_row_;
  FrameHeader header;
  header.message = op.header;
  if (!is_eager(op)) {
    header.type = FrameType::request;
    header.id = take_slot(op);
    op.state = requested;
    ++unanswered_;
    return &take_frame(header);
  }
  const auto bytes = static_cast<std::uint32_t>(op.header.bytes);
  credit_used_ += StreamLimits::eager_cost(bytes);
  header.type = FrameType::eager;
  header.payload = bytes;
  op.state = leaving;
  Frame& frame = take_frame(header);
  frame.payload = {op.data, bytes};
  frame.op = &op;
  return &frame;
}

OutgoingFrame* StreamSender::next_fragment() {
  announced_in_a_row_ = 0;
  SendOp& op = *active_.pop_front();
  if (Slot& slot = slots_[slot_index(op.id)]; !slot.grants.empty()) return &next_write(op, slot);
  const std::uint64_t left = op.header.bytes - op.progress;
  const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, limits_.fragment));
  FrameHeader header;
  header.type = FrameType::data;
  header.payload = bytes;
  header.id = op.id;
  header.offset = op.progress;
  Frame& frame = take_frame(header);
  frame.payload = {op.data + op.progress, bytes};
  frame.op = &op;
  frame.route = PayloadRoute::any_stripe;
  op.progress += bytes;
  if (op.progress < op.header.bytes) {
    active_.push_back(op);
  } else {
    // The peer forgets the message when it reads this frame, so a message that is announced later may use the
    // same id.
    op.state = leaving;
    release_slot(op.id);
  }
  return &frame;
}

void StreamSender::frame_written(OutgoingFrame& written) {
  auto& frame = static_cast<Frame&>(written);
  in_pipe_.remove(frame);
  ++counters_.frames_sent;
  counters_.bytes_sent += frame.payload.size();
  if (frame.goodbye) goodbye_ = Goodbye::written;
  // Earlier fragments may still wait on stripes when the last fragment has been written. So the
  // message has left only when the pipe holds none of its frames.
  SendOp* op = frame.op != nullptr && frame.op->state == leaving && !in_pipe(*frame.op) ? frame.op : nullptr;
  if (op != nullptr) ++counters_.messages_sent;
  frame.copy.reset();
  frame.next = free_frames_;
  free_frames_ = &frame;
  if (op != nullptr) {
    finish(*op, Status());
  } else if (frame.op == nullptr && frame.route == PayloadRoute::remote_write) {
    end_if_written(*frame.ended);
  }
}

std::uint32_t StreamSender::take_slot(SendOp& op) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint16_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  slots_[index].op = &op;
  op.id = index | std::uint32_t{slots_[index].generation} << 16;
  return op.id;
}

void StreamSender::release_slot(std::uint32_t id) {
  Slot& slot = slots_[slot_index(id)];
  slot.op = nullptr;
  slot.granted = 0;
  slot.grants.clear();
  ++slot.generation;
  free_slots_.push_back(static_cast<std::uint16_t>(slot_index(id)));
}

bool StreamSender::in_pipe(const SendOp& op) const {
  const Frame* frame = in_pipe_.front();
  while (frame != nullptr && frame->op != &op) frame = frame->next;
  return frame != nullptr;
}

// Ensures that the frames in the pipe no longer refer to the memory of `op`. If `keep` is set, each of them
// gets a copy of its payload.
void StreamSender::detach_frames(SendOp& op, bool keep) {
  for (Frame* frame = in_pipe_.front(); frame != nullptr; frame = frame->next) {
    if (frame->op != &op) continue;
    frame->op = nullptr;
    const auto payload = frame->payload;
    frame->payload = {};
    if (!keep) continue;
    frame->copy = std::make_unique<std::byte[]>(payload.size());
    if (!payload.empty()) std::memcpy(frame->copy.get(), payload.data(), payload.size());
    frame->payload = {frame->copy.get(), payload.size()};
  }
}

void StreamSender::finish(SendOp& op, const Status& status) {
  op.state = idle;
  std::erase_if(registered_, [&](const Registered& each) { return each.op == &op; });
  op.done(op, status);
}

void StreamSender::fail_all(const Status& why, bool keep_frames) {
  while (SendOp* op = queue_.pop_front()) finish(*op, why);
  // `done` may cancel other operations, so the loop keeps no state across a call of `done`.
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    SendOp* op = slots_[i].op;
    if (op == nullptr) continue;
    if (op->state == active) active_.remove(*op);
    release_slot(op->id);
    give_up(*op, why, keep_frames);
  }
  for (Frame* frame = in_pipe_.front(); frame != nullptr;) {
    SendOp* op = frame->op;
    if (op == nullptr) {
      frame = frame->next;
      continue;
    }
    give_up(*op, why, keep_frames);
    frame = in_pipe_.front();
  }
  control_.clear();
  control_first_ = 0;
  credit_owed_ = 0;
  unanswered_ = 0;
  if (!keep_frames) aborts_.clear();
}

}  // namespace tutti
