#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/channel.h"
#include "transport/stream/frame.h"
#include "transport/transport.h"

namespace tutti {

class Permits;
class RemoteMemory;

// A `StreamChannel` implements the message protocol over any ordered pipe of frames (a socket, a ring in
// shared memory, a queue). Small messages are sent eagerly, as far as the peer's credit permits. A large
// message is announced by a request, and sent once the peer has answered with a clear. Fragments of several
// large messages take turns. A transport's channel derives from `StreamChannel`, and only has to move frames.
// The comments below call the derived class the pipe.
//
// A pipe that can write into the peer's memory calls `write_remotely`. In that case large messages are
// answered with grants in place of clears (docs/seams/grants.md).
//
// The pipe sends each `OutgoingFrame` unchanged. When it receives, it decodes each header with `decode`
// (frame.h), and then reads as many bytes of payload as `payload_left` says. If `decode` returns false, the
// pipe calls `pipe_failed` with `protocol_error`.
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

  // This function is called when there are frames to send, or when `connect` was called. The pipe connects if
  // necessary, and writes what it can write now. `kick` is never called from within itself. It may be called
  // from within any of the functions below, including those for writing (if an operation's `done` sends a
  // message). A pipe that is already writing returns at once and calls `next_frame` again later. If
  // `status()` is not ok and there are no urgent frames, only a goodbye is left to send. If in this case
  // there is no connection yet, a pipe for which connecting is expensive calls `pipe_failed(status())`
  // instead of connecting.
  virtual void kick() = 0;
  // Releases the pipe, since nothing more will be sent or received. It is called at most once, possibly from
  // within any of the functions below, and possibly before there is a connection. The pipe must then end its
  // loops. Frames that it holds are invalid, except those with a remote write that is under way.
  // `~StreamChannel` does not call `close_pipe`, so the destructor of a derived class must release a pipe
  // that was not closed.
  virtual void close_pipe() = 0;

  // --- the pipe calls, to send ---

  bool has_frames() const;
  // Returns whether there are frames to send that are neither messages nor the goodbye: an abort, say. Such
  // frames are worth a connection even if `status()` is no longer ok.
  bool has_urgent_frames() const;
  // Returns the next frame to write, or null. It stays valid until `frame_written`. The pipe may hold several
  // frames, and must write them in order. Each call may take a fragment of a large message. So if a pipe
  // takes more frames than it can write, small messages wait behind fragments.
  OutgoingFrame* next_frame();
  void frame_written(OutgoingFrame& frame);

  // --- a pipe that can write into the peer's memory calls ---

  // Tells the channel, before the first frame, that this pipe writes remotely, and that the peer's pipe does
  // so, too. `next_frame` may then return frames whose `route` is `remote_write`. The pipe writes their
  // payload to their `place`, and sends their header so that it arrives after these bytes. It calls
  // `frame_written` only when the write no longer reads the payload, even if that is much later. `memory`
  // must outlive the channel. If the peer can write only where `permits` lets it, `permits` must outlive the
  // channel, too. If `permits` is null, the peer can write into all registered memory.
  void write_remotely(RemoteMemory& memory, Permits* permits = nullptr);
  // These functions tell the channel that a permit has been given, or is over, if the pipe could not say so
  // at once (permits.h).
  void permitted(std::uint32_t permit, const RemotePlace& place);
  void revoked(std::uint32_t permit);
  // Tells the channel that the next piece of the message with this id is in granted memory, in place of
  // `begin_frame` with the piece's header. The result is like that of `begin_frame`. No payload may be
  // incomplete.
  Status piece_written(std::uint32_t id);
  // Tells the channel that all remote writes are over: this pipe's writes have ended, and the peer's writes
  // can no longer arrive. The operations that waited for remote writes then end. The pipe calls this once,
  // during or after `close_pipe`. The destructor of a derived class must wait until it can make this call.
  void writes_over();

  // --- the pipe calls, to receive frames in order ---

  // Begins a frame. If the result is not ok, the peer broke the protocol, and the channel has failed and
  // closed the pipe.
  Status begin_frame(const FrameHeader& header);
  // Returns the memory where the next payload bytes belong. The pipe may read directly into it, or into the
  // first part of it. The result is empty if `consume` must process the bytes (reductions, control frames,
  // discarded payloads). The pipe must call `direct` again before each read, since the receive may have been
  // cancelled in between.
  std::span<std::byte> direct();
  void direct_filled(std::size_t bytes);
  // Takes payload bytes from the pipe's own memory, at most `payload_left` of them. Returns how many it took.
  // A reduction does not take an incomplete element at the end. The pipe must keep the bytes of that element,
  // and pass them again in front of the next bytes.
  std::size_t consume(std::span<const std::byte> bytes);
  // Takes the next header, or the next part of a payload, out of a packet in which the peer's pipe has put
  // whole headers and any parts of payloads. Moves the beginning of `packet` behind what was taken. Returns
  // false if the packet begins with neither: then the pipe calls `pipe_failed` with `protocol_error`.
  bool take_from(std::span<const std::byte>& packet);
  // Returns how many bytes of the frame's payload have not arrived yet, including those of a payload that
  // will be discarded. If it is zero, the next bytes are a header.
  std::size_t payload_left() const;

  // Permits payloads on stripes (connections beside the first one). The peer announces each of these payloads
  // in a header on the first connection. A channel that has stripes must call this before it reads. Without
  // this call, such a header breaks the protocol.
  void accept_stripes();
  // These functions handle payloads on a stripe, as the functions above handle payloads that follow their
  // headers. Stripes are numbered from 1. The payloads on a stripe arrive in the order in which `begin_frame`
  // saw their headers. The pipe must not read a payload before its header has arrived. A pipe without stripes
  // calls none of these functions.
  std::span<std::byte> stripe_direct(std::uint8_t stripe);
  void stripe_filled(std::uint8_t stripe, std::size_t bytes);
  std::size_t stripe_consume(std::uint8_t stripe, std::span<const std::byte> bytes);
  std::size_t stripe_left(std::uint8_t stripe) const;

  // --- the pipe calls, at the end ---

  // Ends the channel. The pipe calls this when it has broken, was closed by the peer, or could not be made.
  // After a goodbye from either side, this is a clean end. This function calls `close_pipe`. A pipe that can
  // no longer be written to must first be read to its end. The peer's last frames may be its goodbye, or may
  // say why the peer has ended.
  void pipe_failed(const Status& why);
  // Returns whether each side has said goodbye to the other.
  bool has_parted() const;

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
  void settle();
  void fail(const Status& why);

  int peer_;
  TransportOwner& owner_;
  MessageLimits limits_;
  std::unique_ptr<State> state_;
};

}  // namespace tutti
