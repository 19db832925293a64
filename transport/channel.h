#pragma once

#include <cstdint>
#include <string>

#include <tutti/status.h>

#include "transport/message.h"

namespace tutti {

struct Arrival;
struct ChannelCounters;

// A `Channel` carries tagged, ordered, reliable messages to and from one peer. Only the driving thread
// (`Driver`) may call it.
//
// The peer learns of messages in the order of the `send` calls. Payloads may overtake each other, so no
// message waits behind another message's payload.
class Channel {
 public:
  // Waits until nothing touches the memory of any operation. All operations have ended when it returns.
  virtual ~Channel() = default;

  // Starts connecting, unless it has started already. A rank that will only receive must call `connect` too,
  // so that the rank notices when the peer is gone.
  virtual void connect() = 0;
  // Queues a message, and connects first if necessary. A small message on an idle channel is written before
  // `send` returns.
  virtual void send(SendOp& op) = 0;
  // Cancels a send: `done` is called with `why` once nothing touches the operation's memory any more,
  // possibly before `cancel_send` returns (docs/seams/cancellation.md). If the peer has begun to receive the
  // message, the peer's receive fails, unless the whole message has already left this rank. If the peer has
  // not begun to receive the message, the peer forgets the announcement. Other messages are not affected.
  virtual void cancel_send(SendOp& op, const Status& why) = 0;

  // Gives an announced message to the receive that it belongs to. The receive may complete before `claim`
  // returns. A message that has arrived completely can be claimed even after the channel has failed.
  virtual void claim(Arrival& arrival, RecvOp& op) = 0;
  // Declares that no receive will ever want this message. Its payload is dropped as it arrives, and the
  // sender's operation completes as if the message had been received. `discard` may be called from within
  // `on_arrival`.
  virtual void discard(Arrival& arrival) = 0;
  // Cancels a receive that was given to `claim`, as `cancel_send` cancels a send. The rest of the payload is
  // dropped as it arrives. If the peer has not sent the whole message yet, the peer's send fails with the
  // code of `why`.
  virtual void cancel_recv(RecvOp& op, const Status& why) = 0;

  // Tells the peer that the communicator `context` has failed, and why. The peer's `ChannelEvents::on_abort`
  // is called, possibly before all earlier messages have arrived. If the connection ends first, the abort is
  // lost.
  virtual void send_abort(std::uint32_t context, const Status& why) = 0;
  // Cancels all pending operations with `why` and closes, without calling `on_channel_down`. If `clean` is
  // set, frames under way are completed and a goodbye follows, so that the peer knows that this rank did not
  // crash. Returns at once.
  virtual void close(const Status& why, bool clean) = 0;
  // Returns whether `close` has finished: all operations have ended, and the peer has answered the goodbye by
  // closing its side. If the connection has ended, no answer is needed. Once this is true, the destructor
  // returns at once, and cannot lose the goodbye by resetting the connection.
  virtual bool drained() const = 0;
  // Returns whether anything may have reached the peer, or has arrived from it.
  virtual bool has_begun() const = 0;
  // Moves all queued operations to another channel with the same peer, and closes this one. Use it only if
  // `has_begun()` is false and stays false.
  virtual void hand_over(Channel& to) = 0;
  // Returns ok, or why the channel has failed. Operations on a failed channel fail at once.
  virtual const Status& status() const = 0;

  virtual const ChannelCounters& counters() const = 0;
};

// An `Arrival` is a message that a peer has announced. The channel makes it, and owns it until it is claimed
// or discarded. The payload may have been buffered already (eager), or may still be at the sender.
struct Arrival {
  Channel* channel = nullptr;
  int peer = -1;
  MessageHeader header;
  // The mesh uses these links while no receive has claimed the message. `next` and `previous` link the
  // messages to be matched. The `early` links connect the messages of operations that this rank has not
  // issued yet. Once this rank issues the operation of such a message, the mesh compares the message with the
  // operation.
  Arrival* next = nullptr;
  Arrival* previous = nullptr;
  Arrival* next_early = nullptr;
  Arrival* previous_early = nullptr;
  bool early = false;
};

struct ChannelCounters {
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_sent = 0;  // payload only
  std::uint64_t bytes_received = 0;
  std::uint64_t frames_sent = 0;  // frames on the wire: one for a small message
  // These count the bytes that the peer itself has written into this rank's memory: `bytes_in_place` into the
  // memory of receives, and `bytes_staged` into staging chunks (docs/seams/grants.md).
  std::uint64_t bytes_in_place = 0;
  std::uint64_t bytes_staged = 0;
};

// `ChannelEvents` is how a channel notifies its owner, the mesh, on the driving thread.
class ChannelEvents {
 public:
  virtual ~ChannelEvents() = default;
  // A message was announced. The owner finds the receive that the message belongs to, checks the message's
  // length, and returns the receive. If there is no such receive yet, the owner returns null, and keeps the
  // arrival until it claims or discards it.
  virtual RecvOp* on_arrival(Arrival& arrival) = 0;
  // The sender cancelled an announced message before it was claimed. `arrival` is destroyed after this call
  // returns.
  virtual void on_withdrawn(Arrival& arrival) = 0;
  virtual void on_abort(int peer, std::uint32_t context, const Status& why) = 0;
  // The channel has failed. The code says why; for example, the peer died (peer_lost), broke the protocol
  // (protocol_error), could not be reached (unreachable), or left cleanly (aborted). If the peer left
  // cleanly, everything that it had sent has arrived. Operations that are still pending fail after this call.
  virtual void on_channel_down(int peer, const Status& why) = 0;
};

}  // namespace tutti
