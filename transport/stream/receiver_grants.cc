#include <algorithm>

#include "transport/stream/receiver.h"

// This file receives large messages that the peer itself writes into this rank's memory
// (docs/seams/grants.md). It grants memory to the peer, and learns from the peer which parts the
// peer has written.
namespace tutti {

// Answers the announcement of a large message once the message has a receive: with grants, or with a clear.
bool StreamReceiver::answer(Incoming& message) {
  if (remote_ == nullptr) return sender_.control(FrameType::clear, message.id);
  if (message.op->sink.copies()) {
    if (const auto room = grant_in_place(message)) return *room;
  }
  return grant_chunks(message);
}

// Grants the memory of the message's receive, now or later. Returns nothing if that is not possible.
// Otherwise, returns false if a control frame could not be queued.
std::optional<bool> StreamReceiver::grant_in_place(Incoming& message) {
  const std::span<std::byte> memory(message.op->sink.out, message.header.bytes);
  if (permits_ == nullptr) {
    const auto place = remote_->find(memory);
    if (!place) return std::nullopt;
    message.granted = Granted{};
    message.granted->in_place = true;
    return grant_whole(message, *place);
  }
  message.granted = Granted{};
  message.granted->in_place = true;
  RemotePlace place;
  Permits::Answer answer = permits_->permit(message.place, memory, nullptr, place);
  if (answer == Permits::Answer::never) {
    auto& registered = message.granted->registered;
    registered = remote_->add_briefly(memory, RemoteMemory::Use::receiving);
    if (registered != nullptr) answer = permits_->permit(message.place, memory, registered.get(), place);
  }
  if (answer == Permits::Answer::given) return grant_whole(message, place);
  if (answer == Permits::Answer::later) return true;
  message.granted.reset();
  return std::nullopt;
}

bool StreamReceiver::grant_whole(Incoming& message, const RemotePlace& place) {
  message.granted->bytes = message.header.bytes;
  return sender_.grant(message.id, {0, message.header.bytes, place});
}

bool StreamReceiver::permitted(std::uint32_t permit, const RemotePlace& place) {
  if (permit == staging_permit) {
    staging_.permitted(place);
    return true;
  }
  // If the receive was cancelled, the peer will answer the refusal. Then the permit is revoked.
  Incoming& message = incoming_[permit];
  return message.state != State::claimed || grant_whole(message, place);
}

// Grants staging chunks for the beginning of a message. If all of them are in use, the message waits for one.
bool StreamReceiver::grant_chunks(Incoming& message) {
  const std::uint64_t bytes = message.header.bytes;
  std::byte* chunk = staging_.take(*remote_, permits_);
  if (chunk == nullptr && !staging_.is_in_use()) return sender_.control(FrameType::clear, message.id);
  message.granted = Granted{};
  if (chunk == nullptr) waiting_.push_back(&message);
  bool room = true;
  while (room && chunk != nullptr) {
    room = grant_chunk(message, chunk);
    const Granted& granted = *message.granted;
    const bool more = granted.bytes < bytes && granted.open < granted.chunks.size();
    chunk = more ? staging_.take(*remote_, permits_) : nullptr;
  }
  return room;
}

// Grants free chunks to messages that wait for one. Returns false if a control frame could not be queued.
bool StreamReceiver::grant_to_waiting() {
  bool room = true;
  while (room && !waiting_.empty()) {
    std::byte* const chunk = staging_.take(*remote_, permits_);
    if (chunk == nullptr) break;
    Incoming& message = *waiting_.front();
    waiting_.pop_front();
    room = grant_chunk(message, chunk);
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
  Incoming* const message = find_large(header.id);
  if (message == nullptr || !message->granted) return "a write that was not granted";
  const std::uint64_t bytes = header.message.bytes;
  if (header.offset != message->announced) return "a write at a wrong offset";
  if (bytes == 0 || bytes != next_piece(*message)) return "a write of wrong length";
  return take_piece(*message, bytes);
}

const char* StreamReceiver::written(std::uint32_t id) {
  Incoming* const message = find_large(id);
  const std::uint64_t bytes = message != nullptr && message->granted ? next_piece(*message) : 0;
  return bytes == 0 ? "a write that was not granted" : take_piece(*message, bytes);
}

// Returns the length of the next piece of the granted memory, which is 0 if all of it was written.
std::uint64_t StreamReceiver::next_piece(const Incoming& message) const {
  return std::min<std::uint64_t>(message.granted->bytes - message.announced, limits_.fragment);
}

const char* StreamReceiver::take_piece(Incoming& message, std::uint64_t bytes) {
  const std::uint64_t offset = message.announced;
  message.announced += bytes;
  message.received += bytes;
  counters_.bytes_received += bytes;
  // From here on, a later message may use the same id.
  if (message.announced == message.header.bytes) large_[message.id & 0xffff] = nullptr;
  if (message.granted->in_place) {
    counters_.bytes_in_place += bytes;
  } else if (!use_chunk(message, offset, bytes)) {
    return does_not_read;
  }
  if (message.received < message.header.bytes) return nullptr;
  if (is_exposed(message)) {
    if (message.state != State::ending) let_end(message, Status());
    withdraw(message);
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
  return grant_to_waiting();
}

// Returns whether the peer may write into the memory of the message's receive.
bool StreamReceiver::is_exposed(const Incoming& message) {
  return message.granted && message.granted->in_place;
}

void StreamReceiver::let_end(Incoming& message, const Status& why) {
  message.state = State::ending;
  message.granted->why = why;
}

// Ends a message whose memory was granted, and whose writes have arrived. The receive ends when the peer can
// no longer write into its memory. From here on, a later message may use the same id.
void StreamReceiver::withdraw(Incoming& message) {
  if (Incoming*& named = large_[message.id & 0xffff]; named == &message) named = nullptr;
  if (permits_ == nullptr || permits_->revoke(message.place)) end_exposed(message);
}

void StreamReceiver::revoked(std::uint32_t permit) { end_exposed(incoming_[permit]); }

void StreamReceiver::end_exposed(Incoming& message) {
  RecvOp& op = *message.op;
  const Status why = message.granted->why;
  if (why.ok()) ++counters_.messages_received;
  release(message);
  op.done(op, why);
}

void StreamReceiver::end_grants(Incoming& message) {
  const Granted& granted = *message.granted;
  for (std::size_t i = 0; i < granted.open; ++i) staging_.put(granted.chunks[i]);
  std::erase(waiting_, &message);
  message.granted.reset();
}

void StreamReceiver::end_writes() {
  for (std::size_t i = 0; i < incoming_.size(); ++i) {
    if (incoming_[i].state == State::ending) end_exposed(incoming_[i]);
  }
}

}  // namespace tutti
