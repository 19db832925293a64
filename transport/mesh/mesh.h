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

// The `Mesh` holds the connections from this rank to all others, and matches messages with receives.
namespace tutti {

// `ContextEvents` is what a communicator hears from the mesh about its context, on the driving thread.
class ContextEvents {
 public:
  virtual ~ContextEvents() = default;
  // Returns the fingerprint of the local operation with this sequence number; null if it was not issued yet.
  // Finished ones are remembered for a while by the communicator; `finished` says so.
  struct Known {
    const Fingerprint* call = nullptr;
    bool finished = false;
  };
  virtual Known operation(std::uint64_t sequence) const = 0;
  // The text is for `why` below. The communicator knows which number stands for which algorithm.
  virtual std::string describe(const Fingerprint& call) const { return to_string(call); }
  // A message arrived that does not fit the local operation of its sequence number (other call, other length,
  // or an operation that had already finished without expecting it). `why` describes both calls. `theirs`:
  // the peer's call, if it is another one than that of the local operation; else null.
  virtual void on_mismatch(int peer, std::uint64_t sequence, const Fingerprint* theirs,
                           const Status& why) = 0;
  // A peer says that this context has failed.
  virtual void on_abort(int peer, const Status& why) = 0;
  // A peer (world rank) is gone. The communicator decides whether that matters.
  virtual void on_peer_down(int peer, const Status& why) = 0;
};

struct MeshOptions {
  int rank = 0;
  std::vector<PeerInfo> peers;                         // by world rank, ourselves included
  std::vector<std::unique_ptr<Transport>> transports;  // in order of preference
  MessageLimits limits;
  std::chrono::nanoseconds connect_timeout{std::chrono::seconds(30)};
};

// Collectives meet by (context, sequence, index), whichever side comes first; user messages meet by source
// and tag, with wildcards.
//
// Connections are made on first use, over the first transport that reaches the peer, and are shared by all
// communicators. If that transport finds that it does not work between the two after all, both sides go on to
// the next one. Sending to oneself works. The driving thread calls everything but the constructor and
// `shutdown`.
//
// A receive from any source does not fail when a rank is lost. Only the communicator knows which other ranks
// might send; it hears `on_peer_down` and cancels the receive if need be.
class Mesh final : public TransportOwner {
 public:
  Mesh(Driver& driver, MeshOptions options);
  ~Mesh() override;  // requires `shutdown`

  Status start();
  // Fails everything pending, says goodbye to all peers and closes; waits until they have answered or the
  // deadline has passed. By a thread that does not drive; contexts hear nothing more. Does nothing the second
  // time.
  void shutdown(Deadline deadline);

  // Messages that came before are kept until now (within the sender's credit). May call `on_abort` at once.
  void attach(std::uint32_t context, ContextEvents& events);
  // Discards all messages for the context, including later ones. Receives that are still posted fail. A
  // context's number is not used again.
  void detach(std::uint32_t context);
  // The communicator has issued operation `sequence`: messages that arrived early are compared with it now.
  void on_issued(std::uint32_t context, std::uint64_t sequence) {
    if (early_ != 0) compare_early(context, sequence);
  }

  // A failed peer or a detached context fails the operation at once (through `done`).
  void send(int peer, SendOp& op);
  void recv(RecvOp& op);
  // These cancel a posted operation; its `done` gets `why` before they return.
  void cancel(SendOp& op, int peer, const Status& why);
  void cancel(RecvOp& op, const Status& why);
  // Treats a peer as if its connection had broken, since another component found out that it is gone (by
  // missed heartbeats, say).
  void fail_peer(int peer, const Status& why);
  // Returns whether a transport shares memory and reaches all these ranks. Any thread.
  bool can_share(std::span<const int> members) const;
  // Asks the first transport that shares memory and reaches all members. Fails with `unsupported` if there is
  // none.
  void share(ShareRequest& request);
  // Cancels the request, if it is not over; its `done` gets `why` before this returns.
  void cancel_share(ShareRequest& request, const Status& why);
  // Tells all connected peers among `members` (world ranks) that the context has failed.
  void abort(std::uint32_t context, const std::vector<int>& members, const Status& why);

  Driver& driver() { return driver_; }
  int rank() const override { return options_.rank; }
  int size() const override { return static_cast<int>(options_.peers.size()); }
  const PeerInfo& peer(int rank) const override { return options_.peers[static_cast<std::size_t>(rank)]; }
  // Ok, or why the peer is gone.
  const Status& peer_status(int rank) const;
  // Which transport is (or would be) used for that peer; "none" if none reaches it, "self" for this rank.
  std::string_view transport_name(int rank) const;
  // Sums over all channels; per peer if `rank` is not negative.
  ChannelCounters counters(int rank = -1) const;
  // Connections to other ranks, made or being made.
  int open_channels() const;

  // TransportOwner
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
