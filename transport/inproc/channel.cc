#include "transport/inproc/channel.h"

#include <cstring>
#include <utility>

namespace tutti::inproc {

Channel::Channel(Context& context, int peer, Deadline connect_deadline)
    : StreamChannel(peer, *context.owner, context.limits_with(peer)),
      context_(context),
      connect_deadline_(connect_deadline) {
  write_remotely(*context.mailbox->memory());
}

Channel::~Channel() {
  if (!closed_ && pipe_ != nullptr) pipe_->close(side());
  context_.channels.remove(peer(), *this);
}

void Channel::attach(std::shared_ptr<Pipe> pipe) {
  pipe->accept();
  if (closed_) {
    pipe->close(side());
    return;
  }
  pipe_ = std::move(pipe);
  write();
}

Deadline Channel::connect_deadline() const {
  const bool waiting = !closed_ && pipe_ != nullptr && !pipe_->accepted();
  return waiting ? connect_deadline_ : Deadline::never();
}

void Channel::kick() {
  if (pipe_ == nullptr && !closed_) {
    pipe_ = context_.options.hub->connect(owner().rank(), peer());
    if (pipe_ == nullptr) {
      pipe_failed(Status(Code::unreachable, context_.describe(peer()) + " has stopped", peer()));
      return;
    }
  }
  write();
}

void Channel::close_pipe() {
  closed_ = true;
  frame_ = nullptr;
  if (pipe_ != nullptr) pipe_->close(side());
  writes_over();
}

void Channel::pump(bool pending) {
  if (closed_ || pipe_ == nullptr) return;
  if (pending) {
    read();
    write();
  }
  if (!closed_ && connect_deadline().expired()) {
    pipe_failed(Status(Code::unreachable, context_.describe(peer()) + " has not started in time", peer()));
  }
}

void Channel::write() {
  if (writing_) return;
  writing_ = true;
  while (!closed_) {
    if (frame_ == nullptr) frame_ = next_frame();
    if (frame_ == nullptr) break;
    const std::size_t limit = context_.options.buffer;
    const Pipe::Outcome outcome = frame_->route == PayloadRoute::remote_write
                                      ? pipe_->write(side(), *frame_, limit)
                                      : pipe_->push(side(), frame_->header, frame_->payload, limit);
    if (outcome == Pipe::Outcome::refused) {
      pipe_failed(Status(Code::protocol_error,
                         context_.describe(peer()) + " granted memory that it has not registered", peer()));
    }
    // If the pipe is closed, nothing is reported here. `read` reports it, after it has read everything that
    // the peer sent before.
    if (outcome != Pipe::Outcome::done) break;
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
    const Pipe::Outcome outcome = pipe_->pop(side(), packet_);
    if (outcome == Pipe::Outcome::wait) break;
    if (outcome == Pipe::Outcome::closed) {
      pipe_failed(Status(Code::peer_lost,
                         context_.describe(peer()) + " closed the connection without a goodbye", peer()));
    } else if (!receive(packet_)) {
      pipe_failed(Status(Code::protocol_error,
                         context_.describe(peer()) + " sent something that is not a frame", peer()));
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
