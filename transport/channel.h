#pragma once

#include <cstdint>
#include <string>

#include <tutti/status.h>

#include "transport/message.h"

namespace tutti {

struct Arrival;
struct ChannelCounters;

// A `Channel` carries tagged, ordered, reliable messages to and from one peer. Only the driving thread may
// use it.
//
// Announcements arrive in the order in which `send` was called; payloads may overtake each other, and nothing
// waits behind another message's payload.
class Channel {
 public:
  virtual ~Channel() = default;

  // Connects, unless that has begun already. A rank that only receives calls it so that it notices when the
  // peer is gone.
  virtual void connect() = 0;
  // Queues a message; connects first if need be. Small messages on an idle channel are written at once, from
  // this very call.
  virtual void send(SendOp& op) = 0;
  // Cancels a send: `done` is called with `why` before this returns, and the operation's memory is not
  // touched afterwards. If the peer has begun to receive the message, that receive fails (or gets all of it,
  // if its last part had already been sent); otherwise the message vanishes. Other messages are not
  // disturbed.
  virtual void cancel_send(SendOp& op, const Status& why) = 0;

  // Gives the receive for a message that was announced earlier. May complete it at once. A message that had
  // arrived whole can still be claimed after the channel has failed.
  virtual void claim(Arrival& arrival, RecvOp& op) = 0;
  // Says that no receive will ever want this message: its payload is drained. The sender's operation
  // completes as if it had been received. Allowed from within `on_arrival`.
  virtual void discard(Arrival& arrival) = 0;
  // Gives up a receive that has been claimed: `done` is called with `why` before this returns. The rest of
  // the payload is drained as it comes; a send that has not left completely fails with the code of `why`.
  virtual void cancel_recv(RecvOp& op, const Status& why) = 0;

  // Tells the peer that `context` has failed and why. There it reaches `ChannelEvents::on_abort`, possibly
  // before messages that were sent earlier. If the connection ends first, it is lost.
  virtual void send_abort(std::uint32_t context, const Status& why) = 0;
  // Fails everything pending with `why` and closes; no `on_channel_down`. `clean`: frames under way are
  // completed, and a goodbye follows them, so that the peer knows that this is not a crash. Returns at once.
  virtual void close(const Status& why, bool clean) = 0;
  // After `close`: returns true when the goodbye has left and the peer has answered it by closing its side
  // (or the connection has ended), so that the pipe can be dropped without a reset overtaking the goodbye.
  virtual bool drained() const = 0;
  // Returns whether anything may have reached the peer, or arrived from it.
  virtual bool has_begun() const = 0;
  // For a channel that has not begun and never will. Sends its queue over another channel with the same peer,
  // and closes.
  virtual void hand_over(Channel& to) = 0;
  // Ok, or why the channel has failed: then operations fail at once.
  virtual const Status& status() const = 0;

  virtual const ChannelCounters& counters() const = 0;
};

// An `Arrival` is a message that a peer has announced. The channel makes and owns it, until it is claimed or
// discarded. Its payload may have been buffered already (eager) or still be at the sender.
struct Arrival {
  Channel* channel = nullptr;
  int peer = -1;
  MessageHeader header;
  // The mesh uses these while no receive has claimed the message: its place among those to be matched, and
  // among those to be compared once the local operation is issued.
  Arrival* next = nullptr;
  Arrival* previous = nullptr;
  Arrival* next_early = nullptr;
  Arrival* previous_early = nullptr;
  bool early = false;
};

struct ChannelCounters {
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_sent = 0;  // payload
  std::uint64_t bytes_received = 0;
  std::uint64_t frames_sent = 0;  // frames on the wire: one for a small message
};

// `ChannelEvents` is what a channel tells its owner, the mesh, on the driving thread.
class ChannelEvents {
 public:
  virtual ~ChannelEvents() = default;
  // A message was announced. Returns the receive that it belongs to, or null if there is none yet; then the
  // owner keeps the arrival until it claims or discards it. The length has been checked against the receive
  // by the owner.
  virtual RecvOp* on_arrival(Arrival& arrival) = 0;
  // The sender cancelled an announced message before it was claimed; `arrival` is gone when this returns.
  virtual void on_withdrawn(Arrival& arrival) = 0;
  virtual void on_abort(int peer, std::uint32_t context, const Status& why) = 0;
  // The channel can no longer be used: the peer died (peer_lost), broke the protocol (protocol_error), could
  // not be reached (unreachable) or left cleanly (aborted; nothing pending was lost). Pending operations fail
  // after this.
  virtual void on_channel_down(int peer, const Status& why) = 0;
};

}  // namespace tutti
