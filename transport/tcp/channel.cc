#include "transport/tcp/channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/epoll.h>

#include "core/error_text.h"
#include "transport/meeting/crossing.h"
#include "transport/tcp/address.h"
#include "transport/tcp/socket.h"

namespace tutti::tcp {
namespace {

// The channel holds frames of only about this many bytes at a time, so that large messages can take turns.
constexpr std::size_t hold_bytes = 256 * 1024;
// This bounds the work for one peer before other peers have their turn.
constexpr std::size_t write_budget = 1024 * 1024;
constexpr std::size_t read_budget = 512 * 1024;
// Payloads of at least this size are read directly into the receive's memory. For smaller payloads, one read
// of many frames into the scratch buffer costs less.
constexpr std::size_t direct_bytes = 4096;
// At most this many bytes are read at once when a header is due. So most of a large payload is left to the
// next call, which reads it directly into the receive's memory. That costs less than copying it.
constexpr std::size_t header_read_bytes = 16 * 1024;
// At most this many bytes are read after a large payload: the next header, and perhaps a small frame. Any
// further bytes would probably belong to the next large payload, and would have to be copied.
constexpr std::size_t behind_direct_bytes = 2048;
// A rank may send messages to one peer without waiting for anything in between. The first `sent_at_once` of
// them leave at once, and the later ones are coalesced (see below).
constexpr unsigned sent_at_once = 2;
// Messages larger than this gain nothing from being sent together.
constexpr std::size_t coalesced_bytes = 64 * 1024;

// Returns how many bytes of a frame travel over the first connection.
std::size_t frame_bytes(const OutgoingFrame& frame) {
  return frame.header.size() + (frame.stripe == 0 ? frame.payload.size() : 0);
}

}  // namespace

Channel::Channel(Context& context, int peer, std::chrono::nanoseconds connect_timeout)
    : StreamChannel(peer, *context.owner, context.limits_with(peer)),
      context_(context),
      connect_timeout_(connect_timeout) {
  accept_stripes();
}

Channel::~Channel() {
  Channel::close_pipe();
  context_.channels.forget(peer(), *this);
}

// --- connecting ---

void Channel::kick() {
  if (open_) {
    if (coalescing_ && has_urgent_frames()) send_at_once();
    write_frames();
  } else if (!status().ok() && !has_urgent_frames()) {
    pipe_failed(status());  // closed before there was a connection, so there is no one to say goodbye to
  } else if (connector_ == nullptr) {
    start_connecting();
  }
}

void Channel::start_connecting() {
  auto address = published_by(context_.peer(peer()));
  if (!address) {
    pipe_failed(Status(Code::unreachable, context_.describe(peer()) + " has no usable tcp address", peer()));
    return;
  }
  connector_ = std::make_unique<Connector>(context_, peer(), *std::move(address), connect_timeout_, *this);
  connector_->start();
}

Verdict Channel::judge_incoming() const {
  const meeting::OwnSide own{.gone = !status().ok() && !has_urgent_frames(),
                             .connected = open_,
                             .connecting = connector_ != nullptr && connector_->in_progress()};
  switch (meeting::judge_incoming(context_.owner->rank(), peer(), own)) {
    case meeting::Incoming::welcome:
      return Verdict::welcome;
    case meeting::Incoming::wait:
      return Verdict::wait;
    case meeting::Incoming::connected:
      return Verdict::connected;
    case meeting::Incoming::gone:
      break;
  }
  return Verdict::gone;
}

void Channel::attach(Pipe pipe) {
  connector_.reset();
  const Status watched = context_.watch(pipe.descriptor(), EPOLLIN, *this);
  if (!watched.ok()) {
    pipe_failed(watched);
    return;
  }
  pipe_ = std::move(pipe);
  open_ = true;
  write_frames();
}

void Channel::close_pipe() {
  connector_.reset();
  if (!open_) return;
  open_ = false;
  context_.unwatch(pipe_.descriptor());
  pipe_.close();
  for (auto& stripe : outgoing_) stripe->close();
  for (auto& stripe : incoming_) stripe->close();
}

void Channel::on_ready(std::uint32_t events) {
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 && read_frames() && open_) {
    context_.channels.expect_more(*this);
  }
  if (open_ && (events & EPOLLOUT) != 0) {
    waits_writable_ = false;
    write_frames();
    if (open_ && !waits_writable_) context_.rewatch(pipe_.descriptor(), EPOLLIN, *this);
  }
}

// --- writing ---

void Channel::write_frames() {
  // The loop below may already be on the stack: writing a frame may complete an operation, whose `done` may
  // send another message. In that case the loop finds the new message itself, so this call returns.
  if (writing_ || waits_writable_ || write_error_ != 0) return;
  writing_ = true;
  for (std::size_t budget = write_budget; open_;) {
    hold_frames();
    write_stripes();
    if (!open_ || held_count_ == 0) break;
    coalesce();
    const std::size_t written = budget == 0 ? 0 : write_held(write_error_);
    // A write error does not end the channel yet: frames that the peer sent before the connection broke must
    // still be read. They may say why it broke.
    if (write_error_ != 0) break;
    if (written == 0) {
      want_writable();
      break;
    }
    budget -= std::min(budget, written);
    release_written(written);
  }
  writing_ = false;
}

void Channel::hold_frames() {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < held_count_; ++i) bytes += frame_bytes(*held_[i]);
  while (held_count_ < max_held && bytes < hold_bytes) {
    OutgoingFrame* const frame = next_frame();
    if (frame == nullptr) return;
    if (frame->route == PayloadRoute::any_stripe) share_out(*frame);
    count(*frame);
    held_[held_count_++] = frame;
    bytes += frame_bytes(*frame);
  }
}

// Writes what is left of the held frames. Returns how many bytes the socket took: zero if the socket is full.
std::size_t Channel::write_held(int& error) {
  std::array<std::span<const std::byte>, 2 * max_held> parts;
  std::size_t count = 0;
  for (std::size_t i = 0; i < held_count_; ++i) {
    const OutgoingFrame& frame = *held_[i];
    const std::size_t header_left = frame.header.size() - std::min(frame.written, frame.header.size());
    if (header_left > 0) {
      parts[count++] = std::span(frame.header).last(header_left);
    }
    const std::size_t payload_written = frame.written + header_left - frame.header.size();
    if (frame.stripe == 0 && payload_written < frame.payload.size()) {
      parts[count++] = frame.payload.subspan(payload_written);
    }
  }
  const std::size_t written = pipe_.write(std::span(parts).first(count), error);
  if (error == EAGAIN) error = 0;
  return written;
}

void Channel::release_written(std::size_t bytes) {
  std::size_t whole = 0;
  for (; whole < held_count_; ++whole) {
    OutgoingFrame& frame = *held_[whole];
    const std::size_t left = frame_bytes(frame) - frame.written;
    frame.written += std::min(bytes, left);
    if (bytes < left) break;
    bytes -= left;
  }
  const auto written = held_;
  std::copy(held_.begin() + static_cast<std::ptrdiff_t>(whole),
            held_.begin() + static_cast<std::ptrdiff_t>(held_count_), held_.begin());
  held_count_ -= whole;
  for (std::size_t i = 0; i < whole && open_; ++i) {
    OutgoingFrame& frame = *written[i];
    asked_ = has_acknowledge(frame.header);
    if (frame.stripe == 0 || frame.stripe_written == frame.payload.size()) frame_written(frame);
  }
}

void Channel::want_writable() {
  waits_writable_ = true;
  context_.rewatch(pipe_.descriptor(), EPOLLIN | EPOLLOUT, *this);
}

// --- coalescing ---
//
// A rank may send one small message after the other to a peer without waiting for anything in
// between (the root of a broadcast, say). It then runs ahead of that peer. A TCP segment and a
// wake-up for each message would only cost both ranks time. So the third and later messages may
// wait in the kernel until earlier bytes are acknowledged (Nagle's algorithm). Then they leave
// together. Two rules prevent waits for a delayed acknowledgement. First, some frames ask the peer
// to acknowledge them as soon as it has read them. These are the last frame before the waiting
// frames, and each waiting frame. Second, as soon as a caller on this rank waits for anything,
// everything is sent at once.

void Channel::count(OutgoingFrame& frame) {
  if (counted_at_ != context_.channels.polls) {
    counted_at_ = context_.channels.polls;
    in_a_row_ = 0;
    asked_ = false;
  }
  if (frame.op != nullptr && frame.route == PayloadRoute::behind_header &&
      frame.payload.size() <= coalesced_bytes)
    ++in_a_row_;
  if (in_a_row_ >= sent_at_once) set_acknowledge(frame.header);
}

void Channel::coalesce() {
  if (!asked_ || coalescing_) return;
  for (std::size_t i = 0; i < held_count_; ++i) {
    if (!has_acknowledge(held_[i]->header)) return;  // this frame was taken in an earlier poll
  }
  coalescing_ = true;
  set_nagle(pipe_.descriptor(), true);
  context_.channels.coalescing.push_back(this);
}

void Channel::send_at_once() {
  coalescing_ = false;
  asked_ = false;
  if (open_) set_nagle(pipe_.descriptor(), false);
}

// --- reading ---

bool Channel::poll() { return open_ && read_frames(); }

// Reads frames, and returns whether anything arrived.
bool Channel::read_frames() {
  bool any = false;
  // The pipe may hold the rest of a TLS record, which the kernel would not announce again. So pending bytes
  // are read even beyond the budget.
  for (std::size_t budget = read_budget; open_ && (budget > 0 || pipe_.has_pending());) {
    int error = 0;
    std::size_t room = 0;
    const std::size_t got = read_once(error, room);
    any |= got > 0;
    if (!open_) break;
    // The socket is probably empty now. If bytes are left in it, the driver reports the socket again. So this
    // call does not make another system call to find out.
    if (error == 0 && got < room && !pipe_.is_encrypted()) break;
    if (error == EAGAIN && write_error_ == 0) break;
    if (error == EPIPE) {
      pipe_failed(lost("its side of the connection was closed without a goodbye"));
    } else if (error != 0) {
      pipe_failed(lost(error_text(write_error_ != 0 ? write_error_ : error)));
    }
    budget -= std::min(budget, got);
  }
  if (any && open_ && acknowledges_) acknowledge(pipe_.descriptor());
  if (any && open_ && !incoming_.empty()) read_stripes();
  return any;
}

// Makes one system call, and handles the bytes that it read. Sets `room` to the largest number of bytes that
// the call could have read.
std::size_t Channel::read_once(int& error, std::size_t& room) {
  std::byte* const scratch = context_.scratch.get();
  if (rest_bytes_ == 0) {
    const std::span<std::byte> place = direct();
    if (place.size() >= direct_bytes) {
      room = place.size() + behind_direct_bytes;
      const std::size_t got = pipe_.read(place, std::span(scratch, behind_direct_bytes), error);
      const std::size_t placed = std::min(got, place.size());
      bulk_ = true;
      if (placed > 0) direct_filled(placed);
      if (open_) take({scratch, got - placed});
      return got;
    }
  }
  std::memcpy(scratch, rest_.data(), rest_bytes_);
  const std::size_t most = payload_left() > 0 ? Context::scratch_bytes
                           : bulk_            ? behind_direct_bytes
                                              : header_read_bytes;
  room = most - rest_bytes_;
  const std::size_t got = pipe_.read(std::span(scratch + rest_bytes_, room), error);
  bulk_ = false;
  if (got > 0) take({scratch, rest_bytes_ + got});
  return got;
}

void Channel::take(std::span<const std::byte> bytes) {
  rest_bytes_ = 0;
  while (open_ && !bytes.empty()) {
    std::size_t taken = 0;
    if (payload_left() > 0) {
      taken = consume(bytes);
    } else if (bytes.size() >= frame_header_bytes) {
      FrameHeader header;
      if (!decode(bytes.first<frame_header_bytes>(), header)) {
        pipe_failed(Status(Code::protocol_error,
                           context_.describe(peer()) + " sent something that is not a frame", peer()));
        return;
      }
      acknowledges_ = header.acknowledge;
      if (!begin_frame(header).ok()) return;
      taken = frame_header_bytes;
    }
    if (taken == 0) break;
    bytes = bytes.subspan(taken);
  }
  if (!open_) return;
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  rest_bytes_ = bytes.size();
}

Status Channel::lost(const std::string& why) const {
  return Status(Code::peer_lost, context_.describe(peer()) + ": " + why, peer());
}

}  // namespace tutti::tcp
