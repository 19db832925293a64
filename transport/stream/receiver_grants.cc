#include <algorithm>

#include "transport/stream/receiver.h"

// This file receives large messages that the peer itself writes into this rank's memory
// (docs/seams/grants.md). It grants memory to the peer, and learns from the peer which parts the
// peer has written.
namespace tutti {

// Answers the announcement of a large message once the message has a receive: with grants, or with a clear.
bool StreamReceiver::answer(Incoming& message) {
  if (remote_ == nullptr) return sender_.control(FrameType::clear, message.id);
  const std::uint64_t bytes = message.header.bytes;
  if (const Sink& sink = message.op->sink; sink.copies()) {
    if (const auto place = remote_->find({sink.out, bytes})) {
      message.granted = Granted{.bytes = bytes, .in_place = true};
      return sender_.grant(message.id, {0, bytes, *place});
    }
  }
  std::byte* chunk = staging_.take(*remote_);
  if (chunk == nullptr) return sender_.control(FrameType::clear, message.id);
  message.granted = Granted{};
  bool room = true;
  while (room && chunk != nullptr) {
    room = grant_chunk(message, chunk);
    const Granted& granted = *message.granted;
    const bool more = granted.bytes < bytes && granted.open < granted.chunks.size();
    chunk = more ? staging_.take(*remote_) : nullptr;
  }
  return room;
}

// Grants a staging chunk for the next part of a message.
bool StreamReceiver::grant_chunk(Incoming& message, std::byte* chunk) {
  Granted& granted = *message.granted;
  const std::uint64_t offset = granted.bytes;
  const std::uint64_t bytes = std::min<std::uint64_t>(message.header.bytes - offset, limits_.fragment);
  granted.bytes += bytes;
  granted.chunks[granted.open++] = chunk;
  return sender_.grant(message.id, {offset, bytes, staging_.place(chunk)});
}

const char* StreamReceiver::begin_written(const FrameHeader& header) {
  Incoming* const found = find_large(header.id);
  if (found == nullptr || !found->granted) return "a write that was not granted";
  Incoming& message = *found;
  const std::uint64_t bytes = header.message.bytes;
  const std::uint64_t most = message.granted->bytes - message.announced;
  if (header.offset != message.announced) return "a write at a wrong offset";
  if (bytes == 0 || bytes != std::min<std::uint64_t>(most, limits_.fragment))
    return "a write of wrong length";
  message.announced += bytes;
  message.received += bytes;
  counters_.bytes_received += bytes;
  // From here on, a later message may use the same id.
  if (message.announced == message.header.bytes) large_[header.id & 0xffff] = nullptr;
  if (message.granted->in_place) {
    counters_.bytes_in_place += bytes;
  } else if (!use_chunk(message, header.offset, bytes)) {
    return does_not_read;
  }
  if (message.received < message.header.bytes) return nullptr;
  if (message.state == State::ending) {
    end_exposed(message);
  } else {
    complete(message);
  }
  return nullptr;
}

// Takes the bytes out of the first chunk. If a later part of the message still needs a chunk, grants this
// chunk for that part.
bool StreamReceiver::use_chunk(Incoming& message, std::uint64_t offset, std::uint64_t bytes) {
  Granted& granted = *message.granted;
  std::byte* const chunk = granted.chunks.front();
  std::shift_left(granted.chunks.begin(), granted.chunks.end(), 1);
  --granted.open;
  counters_.bytes_staged += bytes;
  if (message.op != nullptr) message.op->sink.consume(offset, {chunk, bytes});
  if (message.op != nullptr && granted.bytes < message.header.bytes) return grant_chunk(message, chunk);
  staging_.put(chunk);
  return true;
}

// Returns whether the peer may write into the memory of the message's receive.
bool StreamReceiver::is_exposed(const Incoming& message) {
  return message.granted && message.granted->in_place;
}

void StreamReceiver::let_end(Incoming& message, const Status& why) {
  message.state = State::ending;
  message.granted->why = why;
}

void StreamReceiver::end_exposed(Incoming& message) {
  RecvOp& op = *message.op;
  const Status why = message.granted->why;
  release(message);
  op.done(op, why);
}

void StreamReceiver::end_grants(Incoming& message) {
  const Granted& granted = *message.granted;
  for (std::size_t i = 0; i < granted.open; ++i) staging_.put(granted.chunks[i]);
  message.granted.reset();
}

void StreamReceiver::end_writes() {
  for (std::size_t i = 0; i < incoming_.size(); ++i) {
    if (incoming_[i].state == State::ending) end_exposed(incoming_[i]);
  }
}

}  // namespace tutti
