#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "transport/driver/driver.h"
#include "transport/message.h"
#include "transport/peer.h"
#include "transport/transport.h"

// The `Mesh` connects this rank with every other rank, and matches messages with receives.
namespace tutti {

// `ContextEvents` is how the mesh notifies a communicator about its context, on the driving thread.
class ContextEvents {
 public:
  virtual ~ContextEvents() = default;
  // `Known` is what the communicator knows about the local operation with a given sequence number. `finished`
  // is true if the operation has finished. `call` is that operation's fingerprint. It is null if this rank
  // has not issued the operation yet, or if the operation finished so long ago that the communicator has
  // forgotten the fingerprint.
  struct Known {
    const Fingerprint* call = nullptr;
    bool finished = false;
  };
  virtual Known operation(std::uint64_t sequence) const = 0;
  // Returns a text that describes the call, for use in `why` (below). The communicator can give the
  // algorithm's name, while the fingerprint has only its number.
  virtual std::string describe(const Fingerprint& call) const { return to_string(call); }
  // A message arrived that does not fit the local operation with its sequence number. Its call or
  // its length differs, or the operation had already finished without this message. `why` says what
  // differs. `theirs` is the peer's call if it differs from the local call, and null otherwise.
  virtual void on_mismatch(int peer, std::uint64_t sequence, const Fingerprint* theirs,
                           const Status& why) = 0;
  // A peer reported that this context has failed.
  virtual void on_abort(int peer, const Status& why) = 0;
  // A peer (a world rank) is gone. The communicator decides whether that matters.
  virtual void on_peer_down(int peer, const Status& why) = 0;
};

struct MeshOptions {
  int rank = 0;
  std::vector<PeerInfo> peers;                         // by world rank, this rank included
  std::vector<std::unique_ptr<Transport>> transports;  // in order of preference
  MessageLimits limits;                                // for this rank's messages to itself
  std::chrono::nanoseconds connect_timeout{std::chrono::seconds(30)};
};

// The mesh matches messages of collectives by (context, sequence, index). It matches user messages by source
// and tag, with wildcards. In both cases the message may arrive before or after the receive is posted.
//
// Connections are made on first use, over the first transport that reaches the peer, and are shared by all
// communicators. If that transport turns out not to work between the two ranks, both switch to the next one.
// A rank can send to itself. Only the driving thread may call the functions of the mesh, except for the
// constructor, `shutdown`, `can_share` and `add_memory`.
//
// A receive from any source does not fail when a rank is lost. Only the communicator knows which other ranks
// might send, so it cancels the receive in `on_peer_down` if necessary.
class Mesh final : public TransportOwner {
 public:
  Mesh(Driver& driver, MeshOptions options);
  ~Mesh() override;  // `shutdown` must have been called

  Status start();
  // Fails everything pending, says goodbye to all peers and closes. Waits until they have answered or the
  // deadline has passed. The calling thread must not be driving. From then on no `ContextEvents` are called.
  // A second call does nothing.
  void shutdown(Deadline deadline);

  // Attaches a communicator to its context. Messages for the context that arrived earlier have been kept
  // (within the sender's credit). `attach` may call `on_abort` before it returns.
  void attach(std::uint32_t context, ContextEvents& events);
  // Discards all messages for the context, including those that arrive later. Receives that are still posted
  // fail. A context's number is not used again.
  void detach(std::uint32_t context);
  // The communicator calls this when it has issued operation `sequence`. The mesh then compares that
  // operation with its messages that arrived earlier.
  void on_issued(std::uint32_t context, std::uint64_t sequence) {
    if (early_ != 0) compare_early(context, sequence);
  }

  // These functions post an operation. If the peer has failed or the context is detached, the operation fails
  // at once: `done` is called with the reason.
  void send(int peer, SendOp& op);
  void recv(RecvOp& op);
  // These functions cancel a posted operation, as `Channel::cancel_send` does.
  void cancel(SendOp& op, int peer, const Status& why);
  void cancel(RecvOp& op, const Status& why);
  // Treats a peer as if its connection had broken. Call it when the peer is known to be gone (because of
  // missed heartbeats, say).
  void fail_peer(int peer, const Status& why);
  // Returns whether a transport shares memory and reaches all these ranks. Any thread may call it.
  bool can_share(std::span<const int> members) const;
  // Passes the request to the first transport that shares memory and reaches all members. The request fails
  // with `unsupported` if there is none.
  void share(ShareRequest& request);
  // Cancels a request that has not been answered: `done` is called with `why` before this returns.
  void cancel_share(ShareRequest& request, const Status& why);
  // Registers a region with every transport that can use it (`Transport::add_memory`). Any thread may call
  // it.
  Result<std::vector<std::unique_ptr<RegisteredMemory>>> add_memory(std::span<std::byte> region);
  // Tells all connected peers among `members` (world ranks) that the context has failed.
  void abort(std::uint32_t context, const std::vector<int>& members, const Status& why);

  Driver& driver() { return driver_; }
  int rank() const override { return options_.rank; }
  int size() const override { return static_cast<int>(options_.peers.size()); }
  const PeerInfo& peer(int rank) const override { return options_.peers[static_cast<std::size_t>(rank)]; }
  // Returns ok, or why the peer is gone.
  const Status& peer_status(int rank) const;
  // Returns the name of the transport that is (or would be) used for that peer. It is "none" if no transport
  // reaches the peer, and "self" for this rank.
  std::string_view transport_name(int rank) const;
  // Returns the counters of the channel with that peer or, if `rank` is negative, their sums over all
  // channels.
  ChannelCounters counters(int rank = -1) const;
  // Returns the number of channels to other ranks, connected or connecting.
  int open_channels() const;

  // These are the functions of TransportOwner.
  RecvOp* on_arrival(Arrival& arrival) override;
  void on_withdrawn(Arrival& arrival) override;
  void on_abort(int peer, std::uint32_t context, const Status& why) override;
  void on_channel_down(int peer, const Status& why) override;
  Channel* on_incoming(int rank, Transport& transport) override;
  void on_unusable(int rank, Transport& transport, const Status& why) override;

 private:
  struct State;
  enum OpState : std::uint32_t { idle, posted, failing, claimed };

  Result<Transport*> sharing_transport(std::span<const int> members) const;
  Status choose(int peer);
  Transport* next_after(int peer, const Transport* transport, std::string& reasons);
  bool follows(int peer, const Transport& transport) const;
  void switch_to(int peer, Transport& transport, const Status& why);
  void say_once(const Transport& unused, int peer, const Status& why);
  Channel* open(int peer);
  void expect(int peer_rank);
  void tell_if_lost(const Status& why) const;
  void fail_posted();
  void compare_early(std::uint32_t context, std::uint64_t sequence);
  RecvOp* match_collective(std::uint32_t context, Arrival& arrival);
  RecvOp* match_user(std::uint32_t context, Arrival& arrival);
  void deliver(std::uint32_t context, RecvOp& op, Arrival& arrival);
  std::string describe(std::uint32_t context, const Fingerprint& call) const;
  bool length_fits(std::uint32_t context, RecvOp& op, Arrival& arrival);
  void report(std::uint32_t context, Arrival& arrival, const ContextEvents::Known& known, RecvOp* op);

  Driver& driver_;
  MeshOptions options_;
  std::size_t early_ = 0;  // messages kept for operations that this rank has not issued yet
  std::unique_ptr<State> state_;
};

}  // namespace tutti
