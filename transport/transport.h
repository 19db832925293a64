#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "transport/channel.h"
#include "transport/driver/driver.h"
#include "transport/peer.h"
#include "transport/shared_segment.h"

namespace tutti {

struct MessageLimits;
class TransportOwner;

// A `Transport` moves bytes between ranks by one mechanism. A plain function `create(options)` in its folder
// makes it. A transport outlives its channels.
class Transport {
 public:
  virtual ~Transport() = default;

  // Returns the name by which users choose the transport, and under which peers find its address in
  // `PeerInfo::addresses`.
  virtual std::string_view name() const = 0;
  // Returns the text that a peer's transport needs to reach this one. It is opaque to all other code, and
  // valid after creation.
  virtual std::string address() const = 0;
  // Returns ok, or why this transport cannot reach that peer. It decides at once, from what all ranks know
  // about both ranks (`PeerInfo`). It must be symmetrical: the peer's transport must give the same answer
  // about this rank.
  virtual Status can_reach(const PeerInfo& peer) const = 0;

  // Starts answering peers. The driving thread calls it, once. Peers may have tried to connect before that.
  virtual Status start(Driver& driver, TransportOwner& owner, const MessageLimits& limits) = 0;
  // Returns a channel to that peer, at once. The channel connects with the first message, or takes the peer's
  // connection. It gives up connecting after `connect_timeout`. If both sides connect at the same time, the
  // transport must let exactly one connection survive. There is one channel with a peer at a time, except
  // that a channel that was handed over (`Channel::hand_over`) still exists when its successor is made.
  virtual std::unique_ptr<Channel> open(int peer, std::chrono::nanoseconds connect_timeout) = 0;
  // Returns whether members that this transport reaches can `share` memory. It depends only on the
  // transport's kind.
  virtual bool can_share() const { return false; }
  // Asks for a segment, as all other members of the request do. This transport must reach all of them, and
  // must have been started. After `stop`, `done` is no longer called.
  virtual void share(ShareRequest& request) {
    request.done(request, Status(Code::unsupported, std::string(name()) + " shares no memory"));
  }
  // Cancels a request at any stage: its `done` is called with `why` before this returns. Does nothing if
  // `done` was called already, or if the request was made to another transport.
  virtual void cancel_share(ShareRequest&, const Status&) {}
  // Stops answering peers. It is called even if `start` failed or was never called. All channels must have
  // been closed before, and are destroyed afterwards. A peer whose connection has not been answered must
  // notice that it never will be, as it does when a listening socket is closed. Otherwise the peer waits
  // until its `connect_timeout`.
  virtual void stop() = 0;
};

// `MessageLimits` are the sizes that both ends of a connection must agree on. `init` checks that they are
// equal on all ranks.
struct MessageLimits {
  std::uint32_t eager = 128 * 1024;     // a message of at most this size is sent without asking
  std::uint32_t credit = 1024 * 1024;   // unclaimed eager bytes of one peer that this rank stores at most
  std::uint32_t fragment = 128 * 1024;  // a payload travels in pieces of at most this size
};

// A `TransportOwner` is what transports notify: the mesh. Only the driving thread calls it.
class TransportOwner : public ChannelEvents {
 public:
  virtual const PeerInfo& peer(int rank) const = 0;
  virtual int size() const = 0;
  virtual int rank() const = 0;
  // Peer `rank` has connected to us over `transport`. The owner returns the channel for the connection, which
  // it opens now if there was none, or null to refuse. `rank` may be any number: the owner refuses a number
  // that is not the rank of a peer. The returned channel may have been closed already. The transport compares
  // it with its own channel with that peer (`ChannelMap::find`), and uses its own only if both are the same.
  virtual Channel* on_incoming(int rank, class Transport& transport) = 0;
  // This transport cannot connect its channel with that peer. The channel has not begun, and the peer knows
  // it too: both sides must use another transport. The owner does not destroy the channel from within this
  // call.
  virtual void on_unusable(int rank, class Transport& transport, const Status& why) = 0;
};

}  // namespace tutti
