#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "transport/channel.h"
#include "transport/driver/driver.h"
#include "transport/message_limits.h"
#include "transport/peer.h"
#include "transport/registered_memory.h"
#include "transport/shared_segment.h"

namespace tutti {

class TransportOwner;

// A `Transport` moves bytes between ranks by one mechanism. A plain function `create(options)` in the
// transport's folder makes it. A transport outlives its channels.
class Transport {
 public:
  virtual ~Transport() = default;

  // Returns the name by which users choose the transport, and under which peers find its address in
  // `PeerInfo::addresses`.
  virtual std::string_view name() const = 0;
  // Returns the text that a peer's transport needs to reach this one. It contains this transport's
  // MessageLimits, is opaque to all other code, and is valid after creation.
  virtual std::string address() const = 0;
  // Returns what the transport uses on this host, for `tutti info`: a device and its address, say. It is
  // empty if there is nothing to tell.
  virtual std::string facts() const { return {}; }
  // Returns ok, or why this transport cannot reach that peer. It decides without communication, from the
  // `PeerInfo` of both ranks, which all ranks know. The answer must be symmetrical: the peer's transport must
  // give the same answer about this rank.
  virtual Status can_reach(const PeerInfo& peer) const = 0;

  // Starts answering peers. The driving thread calls this once. Peers may have tried to connect before this
  // call.
  virtual Status start(Driver& driver, TransportOwner& owner) = 0;
  // Returns a channel to that peer, without waiting for a connection. The channel connects when it sends its
  // first message, unless the peer has connected already. It gives up connecting after `connect_timeout`. If
  // both sides connect at the same time, the transport must let exactly one connection survive. There is one
  // channel with a peer at a time. The only exception is a channel that is being replaced
  // (`Channel::hand_over`), which still exists when its successor is made.
  virtual std::unique_ptr<Channel> open(int peer, std::chrono::nanoseconds connect_timeout) = 0;
  // Returns whether ranks that this transport connects can `share` memory. The answer depends only on the
  // kind of transport.
  virtual bool can_share() const { return false; }
  // Asks for a shared segment. All members of the request must ask for it. This transport must reach all of
  // them, and must have been started. After `stop`, `done` is no longer called.
  virtual void share(ShareRequest& request) {
    request.done(request, Status(Code::unsupported, std::string(name()) + " shares no memory"));
  }
  // Cancels a request at any stage: its `done` is called with `why` before this returns. Does nothing if
  // `done` was called already, or if the request was made to another transport.
  virtual void cancel_share(ShareRequest&, const Status&) {}
  // Registers a region of this rank's memory. Peers can then write large messages straight into receives
  // whose memory is in that region (docs/seams/grants.md). Returns null if this transport has no use for
  // the region. Any thread may call it, and it may take long.
  virtual Result<std::unique_ptr<RegisteredMemory>> add_memory(std::span<std::byte>) {
    return std::unique_ptr<RegisteredMemory>();
  }
  // A rank is lost, as this rank has found out by any means. The transport need not have a channel with it.
  virtual void on_rank_lost() {}
  // Stops answering peers. It is called even if `start` failed or was never called. All channels must have
  // been closed before, and are destroyed afterwards. A peer that still waits for an answer to its connection
  // must notice that no answer will come, for example because the listening socket is closed. Otherwise the
  // peer waits until its `connect_timeout` has passed.
  virtual void stop() = 0;
};

// The `TransportOwner` is the object that transports notify: the mesh. Only the driving thread calls it.
class TransportOwner : public ChannelEvents {
 public:
  virtual const PeerInfo& peer(int rank) const = 0;
  virtual int size() const = 0;
  virtual int rank() const = 0;
  // Peer `rank` has connected to this rank over `transport`. The owner returns the channel for the
  // connection. If there is no channel with that peer yet, the owner opens one first. It returns null to
  // refuse the connection. `rank` may be any number: the owner refuses a number that is not the rank of a
  // peer. The returned channel may have been closed already. The transport looks up its own channel with that
  // peer (`ChannelMap::find`), and uses it only if the owner has returned the same channel.
  virtual Channel* on_incoming(int rank, class Transport& transport) = 0;
  // This transport cannot connect its channel with that peer. The channel has not begun
  // (`Channel::has_begun`). The peer knows that this transport cannot be used, or learns so when this rank
  // connects over another transport. So both sides must use another transport. The owner does not destroy the
  // channel from within this call.
  virtual void on_unusable(int rank, class Transport& transport, const Status& why) = 0;
};

}  // namespace tutti
