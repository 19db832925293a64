#include "transport/stream/receiver.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace tutti {

StreamReceiver::StreamReceiver(Channel& channel, int peer, TransportOwner& owner, const StreamLimits& limits,
                               StreamSender& sender, ChannelCounters& counters)
    : channel_(channel),
      peer_(peer),
      owner_(owner),
      limits_(limits),
      sender_(sender),
      counters_(counters),
      staging_(limits),
      pool_(limits.credit) {}

// Frees the buffers of the messages that have not ended.
StreamReceiver::~StreamReceiver() {
  for (Incoming& message : incoming_)
    pool_.put(message.buffer, static_cast<std::uint32_t>(message.header.bytes));
}

// --- frames ---

const char* StreamReceiver::begin(const FrameHeader& header) {
  assert(left_ == 0);
  frame_ = header;
  left_ = header.payload;
  at_ = 0;
  target_ = nullptr;
  ignored_ = false;
  switch (header.type) {
    case FrameType::eager:
      return begin_eager(header);
    case FrameType::request:
      return begin_request(header);
    case FrameType::data:
      return begin_data(header);
    case FrameType::cancel:
      return begin_cancel(header);
    case FrameType::abort:
      return begin_abort(header);
    default:
      break;
  }
  if (const char* wrong = check_control(header)) return wrong;
  switch (header.type) {
    case FrameType::clear:
      return sender_.on_clear(header.id);
    case FrameType::grant:
      if (remote_ == nullptr) return "a grant over a connection without remote writes";
      return sender_.on_grant(header.id, to_grant(header));
    case FrameType::written:
      return begin_written(header);
    case FrameType::credit:
      return sender_.on_credit(header.offset);
    case FrameType::refuse:
      if (header.code == Code::ok) return sender_.on_refuse(header.id, Status());
      return sender_.on_refuse(header.id,
                               Status(header.code, describe() + " gave up receiving the message", peer_));
    default:
      return "a frame of unknown type";
  }
}

void StreamReceiver::begin_ignored(const FrameHeader& header) {
  left_ = header.stripe == 0 ? header.payload : 0;
  target_ = nullptr;
  ignored_ = true;
}

const char* StreamReceiver::check_control(const FrameHeader& header) const {
  return header.payload == 0 ? nullptr : "a control frame with a payload";
}

const char* StreamReceiver::begin_eager(const FrameHeader& header) {
  if (header.payload != header.message.bytes || header.payload > limits_.eager) {
    return "an eager message of wrong length";
  }
  const std::uint32_t cost = StreamLimits::eager_cost(header.payload);
  if (credit_held_ + cost > limits_.credit) return "an eager message beyond its credit";
  credit_held_ += cost;
  Incoming& message = take_incoming(header);
  message.eager = true;
  message.arriving = true;
  target_ = &message;
  RecvOp* op = owner_.on_arrival(message);
  if (!channel_.status().ok()) {  // a callback has closed the channel
    return op == nullptr || claim(message, *op, channel_.status()) ? nullptr : does_not_read;
  }
  if (op != nullptr) attach(message, *op);
  if (message.state == State::announced && left_ > 0) {
    message.buffer = pool_.get(header.payload);
    if (message.buffer == nullptr) return "a message for which there is no memory";
  }
  if (left_ == 0) end_frame();
  return nullptr;
}

const char* StreamReceiver::begin_request(const FrameHeader& header) {
  if (const char* wrong = check_control(header)) return wrong;
  if (header.message.bytes <= limits_.eager) return "a request for a small message";
  const std::uint32_t index = header.id & 0xffff;
  if (index >= StreamLimits::max_large) return "a message with an impossible id";
  if (unanswered_ >= StreamLimits::max_unanswered) return "too many requests";
  if (index >= large_.size()) large_.resize(index + 1, nullptr);
  if (large_[index] != nullptr) return "two messages with the same id";
  Incoming& message = take_incoming(header);
  message.id = header.id;
  large_[index] = &message;
  ++unanswered_;
  RecvOp* op = owner_.on_arrival(message);
  return op == nullptr || claim(message, *op, channel_.status()) ? nullptr : does_not_read;
}

const char* StreamReceiver::begin_data(const FrameHeader& header) {
  Incoming* message = find_large(header.id);
  if (message == nullptr || message->state == State::announced || message->granted)
    return "data for a message that was not cleared";
  const std::uint64_t rest = message->header.bytes - message->announced;
  if (header.offset != message->announced) return "data at a wrong offset";
  if (header.payload == 0 || header.payload > limits_.fragment || header.payload > rest) {
    return "data of wrong length";
  }
  if (header.payload < rest && header.payload % StreamLimits::min_fragment != 0) return "an odd fragment";
  message->announced += header.payload;
  // A later message may use the same id from here on.
  if (header.payload == rest) large_[header.id & 0xffff] = nullptr;
  if (header.stripe != 0) return announce_on_stripe(*message, header);
  target_ = message;
  at_ = header.offset;
  return nullptr;
}

const char* StreamReceiver::begin_cancel(const FrameHeader& header) {
  if (const char* wrong = check_control(header)) return wrong;
  Incoming* message = find_large(header.id);
  if (message == nullptr) return "a cancel for an unknown message";
  const Code code = header.code == Code::ok ? Code::aborted : header.code;
  const Status why(code, describe() + " cancelled a message that it was sending", peer_);
  if (is_exposed(*message)) {
    if (message->state != State::ending) let_end(*message, why);
    withdraw(*message);
    return nullptr;
  }
  RecvOp* op = message->op;
  if (message->state == State::announced) {
    --unanswered_;
    owner_.on_withdrawn(*message);
  }
  release(*message);
  const bool room = grant_to_waiting();
  if (op != nullptr) op->done(*op, why);
  return room ? nullptr : does_not_read;
}

const char* StreamReceiver::begin_abort(const FrameHeader& header) {
  if (header.payload > StreamLimits::max_abort_text) return "an abort with too long a text";
  if (header.code == Code::ok) return "an abort without a reason";
  if (header.id > static_cast<std::uint32_t>(owner_.size())) return "an abort that blames an unknown rank";
  text_.clear();
  if (left_ == 0) end_frame();
  return nullptr;
}

// --- payload ---

std::span<std::byte> StreamReceiver::direct() {
  return target_ == nullptr || left_ == 0 ? std::span<std::byte>() : place(target_, at_, left_);
}

// Returns the memory into which the pipe can read payload directly, or an empty span.
std::span<std::byte> StreamReceiver::place(const Incoming* message, std::uint64_t at, std::size_t left) {
  if (message->buffer != nullptr) return {message->buffer + at, left};
  if (message->op == nullptr || !message->op->sink.copies()) return {};
  return {message->op->sink.out + at, left};
}

std::size_t StreamReceiver::consume(std::span<const std::byte> bytes) {
  bytes = bytes.first(std::min(bytes.size(), left_));
  if (bytes.empty()) return 0;
  const std::size_t taken = take(bytes);
  if (taken > 0) advance(taken);
  return taken;
}

std::size_t StreamReceiver::take(std::span<const std::byte> bytes) {
  if (target_ == nullptr) {
    if (!ignored_ && frame_.type == FrameType::abort) {
      text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return bytes.size();
  }
  return store(*target_, at_, bytes);
}

std::size_t StreamReceiver::store(Incoming& message, std::uint64_t at, std::span<const std::byte> bytes) {
  if (message.buffer != nullptr) {
    std::memcpy(message.buffer + at, bytes.data(), bytes.size());
  } else if (message.op != nullptr) {
    if (!message.op->sink.copies()) return reduce(message.op->sink, at, bytes);
    message.op->sink.consume(at, bytes);
  }
  return bytes.size();
}

// Combines elements straight from the pipe's memory if they are aligned there, and otherwise from a copy on
// the stack.
std::size_t StreamReceiver::reduce(const Sink& sink, std::uint64_t at, std::span<const std::byte> bytes) {
  const std::size_t element = size_of(sink.reducer->type);
  const std::size_t size = bytes.size() / element * element;
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % element == 0) {
    sink.consume(at, bytes.first(size));
    return size;
  }
  alignas(64) std::byte aligned[4096];
  for (std::size_t done = 0; done < size;) {
    const std::size_t piece = std::min(size - done, sizeof(aligned));
    std::memcpy(aligned, bytes.data() + done, piece);
    sink.consume(at + done, {aligned, piece});
    done += piece;
  }
  return size;
}

void StreamReceiver::advance(std::size_t bytes) {
  left_ -= bytes;
  at_ += bytes;
  if (!ignored_) counters_.bytes_received += bytes;
  if (target_ != nullptr) target_->received += bytes;
  if (left_ == 0) end_frame();
}

void StreamReceiver::end_frame() {
  Incoming* message = target_;
  target_ = nullptr;
  if (ignored_) return;
  if (message == nullptr) {
    if (frame_.type == FrameType::abort) end_abort();
  } else if (message->eager) {
    end_eager(*message);
  } else if (message->received == message->header.bytes) {
    complete(*message);
  }
}

void StreamReceiver::end_eager(Incoming& message) {
  message.arriving = false;
  if (message.state != State::announced) complete(message);
}

void StreamReceiver::end_abort() {
  for (char& c : text_) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  const int culprit = static_cast<int>(frame_.id) - 1;
  owner_.on_abort(peer_, frame_.message.tag.context, Status(frame_.code, text_, culprit));
}

// Ends a claimed or discarded message whose payload has arrived completely.
void StreamReceiver::complete(Incoming& message) {
  RecvOp* op = message.op;
  if (op != nullptr) {
    ++counters_.messages_received;
    if (message.buffer != nullptr) op->sink.consume(0, {message.buffer, message.header.bytes});
  }
  release(message);
  if (op != nullptr) op->done(*op, Status());
}

// --- messages ---

StreamReceiver::Incoming& StreamReceiver::take_incoming(const FrameHeader& header) {
  if (free_incoming_ == nullptr) {
    Incoming& fresh = incoming_.emplace_back();
    fresh.channel = &channel_;
    fresh.peer = peer_;
    fresh.place = static_cast<std::uint32_t>(incoming_.size() - 1);
    free_incoming_ = &fresh;
  }
  Incoming& message = *free_incoming_;
  free_incoming_ = message.next_free;
  message.header = header.message;
  message.announced = 0;
  message.received = 0;
  message.on_stripes = 0;
  message.op = nullptr;
  message.state = State::announced;
  message.eager = false;
  message.arriving = false;
  return message;
}

// Removes a message, and gives back its memory and credit. The caller completes its receive.
void StreamReceiver::release(Incoming& message) {
  if (message.eager) {
    const auto bytes = static_cast<std::uint32_t>(message.header.bytes);
    pool_.put(message.buffer, bytes);
    message.buffer = nullptr;
    credit_held_ -= StreamLimits::eager_cost(bytes);
    sender_.return_credit(StreamLimits::eager_cost(bytes));
  } else {
    if (Incoming*& named = large_[message.id & 0xffff]; named == &message) named = nullptr;
    if (message.granted) end_grants(message);
  }
  if (message.on_stripes > 0) forget_on_stripes(message);
  if (target_ == &message) target_ = nullptr;
  message.op = nullptr;
  message.state = State::free;
  message.next_free = free_incoming_;
  free_incoming_ = &message;
}

StreamReceiver::Incoming* StreamReceiver::find_large(std::uint32_t id) const {
  const std::uint32_t index = id & 0xffff;
  if (index >= large_.size() || large_[index] == nullptr || large_[index]->id != id) return nullptr;
  return large_[index];
}

void StreamReceiver::attach(Incoming& message, RecvOp& op) {
  assert(op.sink.copies() || message.header.bytes % size_of(op.sink.reducer->type) == 0);
  message.op = &op;
  message.state = State::claimed;
  op.channel = &channel_;
  op.id = message.place;
  op.source = peer_;
  op.received = message.header;
}

bool StreamReceiver::claim(Arrival& arrival, RecvOp& op, const Status& failure) {
  auto& message = static_cast<Incoming&>(arrival);
  const bool here = message.eager && !message.arriving;
  if (!failure.ok() && !here) {
    release(message);
    op.done(op, failure);
    return true;
  }
  attach(message, op);
  if (here) {
    complete(message);
    return true;
  }
  if (message.eager) return true;
  --unanswered_;
  return answer(message);
}

bool StreamReceiver::discard(Arrival& arrival, const Status& failure) {
  auto& message = static_cast<Incoming&>(arrival);
  if (!failure.ok() || (message.eager && !message.arriving)) {
    release(message);
    return true;
  }
  message.state = State::dropped;
  if (message.eager) return true;
  --unanswered_;
  return sender_.control(FrameType::refuse, message.id);
}

bool StreamReceiver::cancel(RecvOp& op, const Status& why) {
  if (op.id >= incoming_.size() || incoming_[op.id].op != &op) return true;
  Incoming& message = incoming_[op.id];
  if (message.state == State::ending) return true;
  if (is_exposed(message)) {
    let_end(message, why);
    return sender_.control(FrameType::refuse, message.id, why.code());
  }
  message.op = nullptr;
  message.state = State::dropped;
  const bool room = message.eager || sender_.control(FrameType::refuse, message.id, why.code());
  op.done(op, why);
  return room;
}

void StreamReceiver::fail_all(const Status& why) {
  target_ = nullptr;
  ignored_ = true;
  // `done` may claim or discard other messages, so the loop keeps no state across a call of `done`.
  for (std::size_t i = 0; i < incoming_.size(); ++i) {
    Incoming& message = incoming_[i];
    RecvOp* op = message.op;
    if (message.state != State::claimed && message.state != State::dropped) continue;
    if (is_exposed(message)) {
      let_end(message, why);
      continue;
    }
    release(message);
    if (op != nullptr) op->done(*op, why);
  }
}

}  // namespace tutti
