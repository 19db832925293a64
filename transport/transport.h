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
// makes it.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;
  // The text that a peer needs to reach us; opaque to all others. Valid after creation.
  virtual std::string address() const = 0;
  // Returns ok, or why this transport cannot reach that peer. It depends on the addresses alone, and must be
  // symmetrical.
  virtual Status can_reach(const PeerInfo& peer) const = 0;

  // Starts answering peers. The driving thread calls it, once.
  virtual Status start(Driver& driver, TransportOwner& owner, const MessageLimits& limits) = 0;
  // A channel to that peer; returns at once and connects with the first message, or is found by the peer's
  // connection. Connecting is given up after `connect_timeout`.
  virtual std::unique_ptr<Channel> open(int peer, std::chrono::nanoseconds connect_timeout) = 0;
  // Returns whether members that this transport reaches can `share` memory; depends only on the transport's
  // kind.
  virtual bool can_share() const { return false; }
  // All members of the request ask for the same segment; every one of them is reached by this transport, and
  // it has been started. After `stop` nothing is called any more.
  virtual void share(ShareRequest& request) {
    request.done(request, Status(Code::unsupported, std::string(name()) + " shares no memory"));
  }
  // Cancels a request that is not over, at any stage: its `done` gets `why` before this returns. Does nothing
  // if the request is over, or went elsewhere.
  virtual void cancel_share(ShareRequest&, const Status&) {}
  // Stops answering. All channels must have been closed before.
  virtual void stop() = 0;
};

// `MessageLimits` are the sizes that shape the wire. They are equal on all ranks, which `init` checks.
struct MessageLimits {
  std::uint32_t eager = 128 * 1024;     // up to this a message is sent without asking
  std::uint32_t credit = 1024 * 1024;   // eager bytes a peer may have in our memory unclaimed
  std::uint32_t fragment = 128 * 1024;  // a payload travels in pieces of at most this
};

// A `TransportOwner` asks a transport for connections: the mesh. The driving thread calls it.
class TransportOwner : public ChannelEvents {
 public:
  virtual const PeerInfo& peer(int rank) const = 0;
  virtual int size() const = 0;
  virtual int rank() const = 0;
  // Peer `rank` has connected to us through `transport`: the channel to attach to, opened now if there was
  // none; null to refuse.
  virtual Channel* on_incoming(int rank, class Transport& transport) = 0;
  // This transport cannot make the channel with that peer, which has not begun. The peer knows that, too, so
  // both sides will use another transport. The channel is not destroyed from within.
  virtual void on_unusable(int rank, class Transport& transport, const Status& why) = 0;
};

}  // namespace tutti
