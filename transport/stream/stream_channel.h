#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/channel.h"
#include "transport/stream/frame.h"
#include "transport/transport.h"

namespace tutti {

// A `StreamChannel` is the message protocol over any ordered pipe of frames (a socket, a ring in shared
// memory, a queue): small messages are sent eagerly under credit, large ones by request and clear-to-send,
// and the fragments of several large messages take turns. A transport derives from it and only has to move
// frames.
class StreamChannel : public Channel {
 public:
  StreamChannel(int peer, TransportOwner& owner, const MessageLimits& limits);
  ~StreamChannel() override;

  void connect() final;
  void send(SendOp& op) final;
  void cancel_send(SendOp& op, const Status& why) final;
  void claim(Arrival& arrival, RecvOp& op) final;
  void discard(Arrival& arrival) final;
  void cancel_recv(RecvOp& op, const Status& why) final;
  void send_abort(std::uint32_t context, const Status& why) final;
  void close(const Status& why, bool clean) final;
  bool drained() const final;
  bool has_begun() const final;
  void hand_over(Channel& to) final;
  const Status& status() const final;
  const ChannelCounters& counters() const final;

 protected:
  // --- the pipe implements ---

  // Called when there are frames to write. The pipe connects if need be, and writes what it can. This is
  // never called from within itself, but possibly from within any of the calls below, including the writing
  // ones (an operation's `done` may send). Then a pipe that is already writing returns at once and asks
  // `next_frame` again later.
  virtual void kick() = 0;
  // Releases the pipe: nothing will be sent or received any more. Called at most once, possibly from within
  // any of the calls below; the pipe must stop its loops then. Frames that it holds are void.
  virtual void close_pipe() = 0;

  // --- the pipe calls, to send ---

  bool has_frames() const;
  // Returns whether the peer must be told something besides messages and goodbye: why a context has failed,
  // say.
  bool has_urgent_frames() const;
  // The next frame to write, or null. It stays valid until `frame_written`; the pipe may hold several and
  // must write them in order. Large messages take turns, one frame per call.
  OutgoingFrame* next_frame();
  void frame_written(OutgoingFrame& frame);

  // --- the pipe calls, to receive; frames in order ---

  // Begins a frame. If the result is not ok, the peer broke the protocol, and the channel has failed and
  // closed the pipe.
  Status begin_frame(const FrameHeader& header);
  // Returns the memory for the next payload bytes, so that the pipe can read directly into it. It is empty if
  // the bytes must be examined first (reductions, control frames, drained payloads).
  std::span<std::byte> direct();
  void direct_filled(std::size_t bytes);
  // Hands over payload bytes from the pipe's own memory. Returns how many were taken: all of them, except
  // that a reduction leaves a last incomplete element until the rest of it has arrived.
  std::size_t consume(std::span<const std::byte> bytes);
  std::size_t payload_left() const;

  // The same for the payloads on side connection `side`, from 1 on, in the order in which `begin_frame` saw
  // their headers: what has not been announced must not be read yet.
  std::span<std::byte> side_direct(std::uint8_t side);
  void side_filled(std::uint8_t side, std::size_t bytes);
  std::size_t side_consume(std::uint8_t side, std::span<const std::byte> bytes);
  std::size_t side_left(std::uint8_t side) const;

  // --- the pipe calls, at the end ---

  // The pipe broke or was closed by the peer, or could not be made. After a goodbye of either side this is a
  // clean end. Calls `close_pipe`.
  void pipe_failed(const Status& why);

  int peer() const { return peer_; }
  TransportOwner& owner() const { return owner_; }
  const MessageLimits& limits() const { return limits_; }

 private:
  struct State;
  void flush();
  void judge(bool room_for_control);
  void after_receiving();
  void end_if_peer_left();
  Status violation(const char* what) const;
  void end(const Status& why);
  void end_pipe();
  void fail(const Status& why);

  int peer_;
  TransportOwner& owner_;
  MessageLimits limits_;
  std::unique_ptr<State> state_;
};

}  // namespace tutti
