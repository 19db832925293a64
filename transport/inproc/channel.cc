#include "transport/inproc/channel.h"

#include <cstring>

namespace tutti::inproc {

Channel::Channel(int peer, Transport& transport, TransportOwner& owner, const MessageLimits& limits,
                 Deadline connect_deadline)
    : StreamChannel(peer, owner, limits), transport_(transport), connect_deadline_(connect_deadline) {}

Channel::~Channel() {
  if (!closed_ && wire_ != nullptr) wire_->close(side());
  transport_.forget(*this);
}

void Channel::attach(std::shared_ptr<Wire> wire) {
  wire->accept();
  if (closed_) {
    wire->close(side());
    return;
  }
  wire_ = std::move(wire);
  write();
}

Deadline Channel::connect_deadline() const {
  const bool waiting = !closed_ && wire_ != nullptr && !wire_->accepted();
  return waiting ? connect_deadline_ : Deadline::never();
}

void Channel::kick() {
  if (wire_ == nullptr && !closed_) {
    wire_ = transport_.options().hub->connect(owner().rank(), peer());
    if (wire_ == nullptr) {
      pipe_failed(Status(Code::unreachable, describe() + " has stopped", peer()));
      return;
    }
  }
  write();
}

void Channel::close_pipe() {
  closed_ = true;
  frame_ = nullptr;
  if (wire_ != nullptr) wire_->close(side());
}

void Channel::pump(bool pending) {
  if (closed_ || wire_ == nullptr) return;
  if (pending) {
    read();
    write();
  }
  if (!closed_ && connect_deadline().expired()) {
    pipe_failed(Status(Code::unreachable, describe() + " has not started in time", peer()));
  }
}

void Channel::write() {
  if (writing_) return;
  writing_ = true;
  while (!closed_) {
    if (frame_ == nullptr) frame_ = next_frame();
    if (frame_ == nullptr) break;
    // `closed` shows in `read`, after what the peer had sent before.
    if (wire_->push(side(), frame_->header, frame_->payload, transport_.options().buffer) !=
        Wire::Outcome::done)
      break;
    OutgoingFrame& written = *frame_;
    frame_ = nullptr;
    frame_written(written);
  }
  writing_ = false;
}

void Channel::read() {
  if (reading_) return;
  reading_ = true;
  while (!closed_) {
    const Wire::Outcome outcome = wire_->pop(side(), packet_);
    if (outcome == Wire::Outcome::wait) break;
    if (outcome == Wire::Outcome::closed) {
      pipe_failed(Status(Code::peer_lost, describe() + " closed the connection without a goodbye", peer()));
    } else if (!receive(packet_)) {
      pipe_failed(Status(Code::protocol_error, describe() + " sent something that is no frame", peer()));
    }
  }
  reading_ = false;
}

bool Channel::receive(const Packet& packet) {
  FrameHeader header;
  if (!decode(packet.header, header) || header.payload != packet.payload.size()) return false;
  if (!begin_frame(header).ok()) return true;
  if (const std::span<std::byte> place = direct(); !place.empty()) {
    std::memcpy(place.data(), packet.payload.data(), place.size());
    direct_filled(place.size());
  } else {
    consume(packet.payload);
  }
  return true;
}

}  // namespace tutti::inproc
