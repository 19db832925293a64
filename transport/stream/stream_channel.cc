#include "transport/stream/stream_channel.h"

#include <algorithm>
#include <cassert>

#include "transport/stream/limits.h"
#include "transport/stream/receiver.h"
#include "transport/stream/sender.h"

namespace tutti {

struct StreamChannel::State {
  State(StreamChannel& channel, int peer, TransportOwner& owner, const MessageLimits& limits)
      : sender(StreamLimits(limits), counters),
        receiver(channel, peer, owner, StreamLimits(limits), sender, counters) {}

  ChannelCounters counters;
  StreamSender sender;
  StreamReceiver receiver;
  Status status;
  bool kicking = false;
  bool kick_again = false;
  bool peer_left = false;  // the peer's goodbye has arrived
  bool pipe_over = false;  // close_pipe was called
  bool begun = false;      // the pipe has been given a frame to write, or a frame has arrived
  bool remote = false;     // write_remotely was called
  bool writes_over = false;

  // Returns whether the memory of all operations is free: neither the pipe nor a remote write touches it.
  bool settled() const { return pipe_over && (writes_over || !remote); }
};

StreamChannel::StreamChannel(int peer, TransportOwner& owner, const MessageLimits& limits)
    : peer_(peer),
      owner_(owner),
      limits_(limits),
      state_(std::make_unique<State>(*this, peer, owner, limits)) {}

StreamChannel::~StreamChannel() = default;

// Lets the pipe write. Writing may complete an operation, whose `done` may send again. So this function loops
// instead of recursing.
void StreamChannel::flush() {
  State& state = *state_;
  if (state.kicking) {
    state.kick_again = true;
    return;
  }
  state.kicking = true;
  do {
    state.kick_again = false;
    if (state.pipe_over || !state.sender.has_frames()) break;
    kick();
  } while (state.kick_again);
  state.kicking = false;
}

void StreamChannel::connect() {
  const State& state = *state_;
  if (state.status.ok() && !state.pipe_over && !state.kicking) kick();
}

void StreamChannel::send(SendOp& op) {
  State& state = *state_;
  if (!state.status.ok()) {
    op.done(op, state.status);
    return;
  }
  state.sender.push(op);
  flush();
}

void StreamChannel::cancel_send(SendOp& op, const Status& why) { judge(state_->sender.cancel(op, why)); }

void StreamChannel::claim(Arrival& arrival, RecvOp& op) {
  judge(state_->receiver.claim(arrival, op, state_->status));
}

void StreamChannel::discard(Arrival& arrival) { judge(state_->receiver.discard(arrival, state_->status)); }

void StreamChannel::cancel_recv(RecvOp& op, const Status& why) { judge(state_->receiver.cancel(op, why)); }

void StreamChannel::judge(bool room_for_control) {
  if (!state_->status.ok()) return;
  if (room_for_control) {
    flush();
  } else {
    fail(violation("frames, but does not read ours"));
  }
}

void StreamChannel::send_abort(std::uint32_t context, const Status& why) {
  if (!state_->status.ok()) return;
  state_->sender.abort(context, why);
  flush();
}

void StreamChannel::close(const Status& why, bool clean) {
  State& state = *state_;
  if (!state.status.ok()) {
    if (!clean) end_pipe();
    return settle();
  }
  state.status = why;
  if (clean) state.sender.goodbye();
  state.receiver.fail_all(why);
  state.sender.fail_all(why, clean);
  if (clean) {
    flush();
  } else {
    end_pipe();
    settle();
  }
}

bool StreamChannel::has_begun() const { return state_->begun; }

void StreamChannel::hand_over(Channel& to) {
  State& state = *state_;
  assert(!state.begun);
  if (state.status.ok()) state.status = Status(Code::aborted, "another transport is used instead", peer_);
  end_pipe();
  state.sender.hand_over(to);
}

bool StreamChannel::drained() const { return state_->settled(); }
const Status& StreamChannel::status() const { return state_->status; }
const ChannelCounters& StreamChannel::counters() const { return state_->counters; }

bool StreamChannel::has_frames() const { return !state_->pipe_over && state_->sender.has_frames(); }

bool StreamChannel::has_urgent_frames() const { return !state_->pipe_over && state_->sender.urgent(); }

OutgoingFrame* StreamChannel::next_frame() {
  if (state_->pipe_over) return nullptr;
  OutgoingFrame* const frame = state_->sender.next_frame();
  if (frame != nullptr) state_->begun = true;
  return frame;
}

void StreamChannel::frame_written(OutgoingFrame& frame) { state_->sender.frame_written(frame); }

Status StreamChannel::begin_frame(const FrameHeader& header) {
  State& state = *state_;
  state.begun = true;
  if (state.peer_left) {
    fail(violation("a frame after its goodbye"));
    return state.status;
  }
  if (header.type == FrameType::goodbye) {
    if (header.payload != 0) {
      fail(violation("a goodbye with a payload"));
      return state.status;
    }
    state.peer_left = true;
    end_if_peer_left();
    return Status();
  }
  if (!state.status.ok()) {
    state.receiver.begin_ignored(header);
    return Status();
  }
  if (const char* wrong = state.receiver.begin(header)) {
    fail(violation(wrong));
    return state.status;
  }
  after_receiving();
  return Status();
}

Status StreamChannel::piece_written(std::uint32_t id) {
  State& state = *state_;
  const char* wrong = nullptr;
  if (state.peer_left) {
    wrong = "a write after its goodbye";
  } else if (state.status.ok()) {
    wrong = state.receiver.written(id);
  }
  if (wrong != nullptr) {
    fail(violation(wrong));
    return state.status;
  }
  after_receiving();
  return Status();
}

std::span<std::byte> StreamChannel::direct() { return state_->receiver.direct(); }

void StreamChannel::direct_filled(std::size_t bytes) {
  state_->receiver.direct_filled(bytes);
  after_receiving();
}

std::size_t StreamChannel::consume(std::span<const std::byte> bytes) {
  const std::size_t taken = state_->receiver.consume(bytes);
  after_receiving();
  return taken;
}

bool StreamChannel::take_from(std::span<const std::byte>& packet) {
  std::size_t taken = 0;
  if (payload_left() == 0) {
    FrameHeader header;
    if (packet.size() < frame_header_bytes || !decode(packet.first<frame_header_bytes>(), header))
      return false;
    taken = frame_header_bytes;
    static_cast<void>(begin_frame(header));
  } else if (const std::span<std::byte> place = direct(); !place.empty()) {
    taken = std::min(place.size(), packet.size());
    std::copy_n(packet.begin(), taken, place.begin());
    direct_filled(taken);
  } else {
    taken = consume(packet);
  }
  packet = packet.subspan(taken);
  return taken > 0;
}

std::size_t StreamChannel::payload_left() const { return state_->receiver.payload_left(); }

std::span<std::byte> StreamChannel::stripe_direct(std::uint8_t stripe) {
  return state_->receiver.stripe_direct(stripe);
}

void StreamChannel::stripe_filled(std::uint8_t stripe, std::size_t bytes) {
  state_->receiver.stripe_filled(stripe, bytes);
  after_receiving();
  end_if_peer_left();
}

std::size_t StreamChannel::stripe_consume(std::uint8_t stripe, std::span<const std::byte> bytes) {
  const std::size_t taken = state_->receiver.stripe_consume(stripe, bytes);
  after_receiving();
  end_if_peer_left();
  return taken;
}

void StreamChannel::write_remotely(RemoteMemory& memory, Permits* permits) {
  state_->remote = true;
  state_->sender.write_remotely(memory);
  state_->receiver.write_remotely(memory, permits);
}

void StreamChannel::permitted(std::uint32_t permit, const RemotePlace& place) {
  judge(state_->receiver.permitted(permit, place));
}

void StreamChannel::revoked(std::uint32_t permit) { state_->receiver.revoked(permit); }

void StreamChannel::writes_over() {
  state_->writes_over = true;
  settle();
}

// After a failure or a close, some operations must wait for remote writes. This function ends these
// operations if the writes are over.
void StreamChannel::settle() {
  State& state = *state_;
  if (!state.settled()) return;
  state.receiver.end_writes();
  state.sender.end_writes();
}

void StreamChannel::accept_stripes() { state_->receiver.accept_stripes(); }

std::size_t StreamChannel::stripe_left(std::uint8_t stripe) const {
  return state_->receiver.stripe_left(stripe);
}

// Ends the channel after the peer's goodbye. A goodbye can overtake payloads on stripes, so the channel ends
// only once these payloads have arrived.
void StreamChannel::end_if_peer_left() {
  if (!state_->peer_left || (state_->status.ok() && state_->receiver.expects_stripes())) return;
  end(Status(Code::aborted, owner_.peer(peer_).describe() + " has left", peer_));
}

// Sends what a received frame has made possible: `clear` frames, frames that return credit, and messages that
// were waiting for the peer's `clear` or credit.
void StreamChannel::after_receiving() {
  if (state_->status.ok() && state_->sender.has_frames()) flush();
}

Status StreamChannel::violation(const char* what) const {
  return Status(Code::protocol_error, owner_.peer(peer_).describe() + " broke the protocol: it sent " + what,
                peer_);
}

void StreamChannel::pipe_failed(const Status& why) { end(why); }

bool StreamChannel::has_parted() const { return state_->peer_left && state_->sender.goodbye_written(); }

void StreamChannel::end_pipe() {
  if (state_->pipe_over) return;
  state_->pipe_over = true;
  close_pipe();
}

// Fails the channel with `why`. If the channel has already failed or been closed, this only ends its pipe.
void StreamChannel::end(const Status& why) {
  if (state_->status.ok()) {
    fail(why);
  } else {
    end_pipe();
    settle();
  }
}

void StreamChannel::fail(const Status& why) {
  State& state = *state_;
  if (!state.status.ok()) {
    end_pipe();
    return settle();
  }
  state.status = why;
  end_pipe();
  owner_.on_channel_down(peer_, why);
  state.receiver.fail_all(why);
  state.sender.fail_all(why, false);
  settle();
}

}  // namespace tutti
