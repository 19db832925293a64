#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <poll.h>

#include "control/liveness/address.h"
#include "control/liveness/frame.h"
#include "control/liveness/poll_loop.h"
#include "control/liveness/stream.h"
#include "control/plane.h"
#include "core/backoff.h"
#include "core/descriptor.h"
#include "transport/meeting/listener.h"
#include "transport/peer.h"

namespace tutti::liveness {

using Clock = std::chrono::steady_clock;

struct OverlayOptions {
  int rank = 0;
  std::vector<PeerInfo> peers;
  std::chrono::nanoseconds limit{
      std::chrono::seconds(10)};                 // a neighbour that is silent for this long is lost
  std::uint64_t nonce = 0;                       // the nonce in this rank's published address
  security::SharedCredentials credentials = {};  // null if connections have no guard
  std::chrono::nanoseconds hello_limit{std::chrono::seconds(5)};  // time for a new connection's hello
  // Makes connections; tests replace it.
  std::function<std::unique_ptr<Stream>(const SocketAddress&, security::Guard)> connect = connect_to;
};

// An `Overlay` is the control plane of one rank, as a state machine around poll(). Its thread calls `collect`
// to get the descriptors, waits for them until `next()` at the latest, and then calls `run`. Only one thread
// may call an overlay, and the overlay calls the `ControlEvents` on that thread.
//
// A neighbour (ring.h) whose connection ends without a goodbye, or whose process has ended, is suspected. If
// no rank reports the reason within the grace period, the neighbour counts as lost. A neighbour that has been
// silent for `OverlayOptions::limit` counts as lost without a grace period. A rank that finds another rank
// lost tells all its neighbours, which tell their neighbours. The lost rank is notified too: if it is still
// alive, it learns that it was given up. Then the ring closes around the gap.
class Overlay final : public meeting::Port {
 public:
  Overlay(OverlayOptions options, Descriptor listener, ControlEvents& events);

  void start(Clock::time_point now);
  void collect(std::vector<pollfd>& waits);
  Clock::time_point next() const;
  void run(const std::vector<pollfd>& ready, Clock::time_point now);
  // Returns ok if every neighbour is linked or gone. Otherwise it says why a neighbour is not
  // linked. `unauthenticated` means that one of the two ranks could not prove its identity.
  // `resource_exhausted` means that descriptors have run out. In all other cases the code is
  // `timeout`, and the message has the neighbour's address and the error of the last attempt.
  Status unlinked() const;

  void publish(std::uint32_t topic, std::uint64_t key, std::string body);
  void send(int target, std::uint32_t topic, std::string body);
  void give_up(int rank, const Status& why);
  void set_generation(std::uint32_t generation) { generation_ = generation; }
  // Says goodbye. `over` becomes true once all neighbours have received the goodbye, or after half a second
  // at the latest.
  void leave(Clock::time_point now);
  bool over(Clock::time_point now) const;

 private:
  enum class Presence : std::uint8_t { here, left, lost };
  enum class Phase : std::uint8_t { absent, connecting, greeting, open, closing };
  static constexpr Clock::time_point never = Clock::time_point::max();
  static constexpr Backoff between_refusals{std::chrono::milliseconds(10), std::chrono::milliseconds(80)};

  // A `Contact` is a rank that this rank is linked with, or should be.
  struct Contact {
    Phase phase = Phase::absent;
    std::unique_ptr<Stream> stream;
    std::optional<SocketAddress> address;
    std::optional<Resolution> resolution;  // the lookup of its host's name, while it is in progress
    Descriptor process;                    // readable once the process has ended
    Clock::time_point heard = never;       // its last sign of life
    Clock::time_point told = never;        // this rank's last sign of life to the contact
    Clock::time_point due = never;         // the time by which it must be linked
    Clock::time_point next_try = never;
    Clock::time_point judged = never;  // the time at which a suspected contact counts as lost
    std::string evidence;
    Status refusal;  // the last failure to prove an identity, on either side
    int refusals = 0;
    Backoff backoff = between_refusals;
    int rejections = 0;
    std::string failed;             // why the last attempt to connect failed; empty if nothing answered
    bool lacks_descriptor = false;  // whether that attempt lacked a descriptor
  };
  // A `Closing` is a connection whose last bytes are being written.
  struct Closing {
    std::unique_ptr<Stream> stream;
    Clock::time_point due;
  };
  struct Lost {
    int rank;
    Frame frame;
  };

  // overlay.cc has the functions for the state of all ranks, and for passing notes on.
  bool is_here(int rank) const { return presence_[static_cast<std::size_t>(rank)] == Presence::here; }
  bool is_rank(std::uint32_t number) const { return number < presence_.size(); }
  void take(int from, Frame& frame);
  void deliver(const Frame& frame);
  void route(Frame& frame, int from);
  void pass_on(const Frame& frame, int except);
  bool first_time(std::uint32_t topic, std::uint64_t key);
  void on_lost(const Frame& frame, int from);
  void on_left(int rank, int from);
  void fence(const std::string& why);
  void remove(int rank, Presence presence);
  void mend(Clock::time_point connect_at, Clock::time_point patience_from);
  Frame frame(FrameKind kind) const;
  std::string unreached(int rank, const Contact& contact) const;

  // overlay_strangers.cc has the functions of the port where other processes connect.
  std::size_t hello_bytes() const override { return liveness::hello_bytes; }
  bool begins_like_hello(std::span<const std::byte> bytes) const override;
  std::optional<std::uint32_t> claimed_rank(std::span<const std::byte> hello) const override;
  void on_hello(meeting::Guest guest) override;
  Verdict judge(const Hello& hello) const;
  void turn_away(Verdict verdict, const Hello& hello, std::unique_ptr<Stream> stream);

  // overlay_links.cc has the functions for connections with neighbours.
  void try_connect(int rank, Contact& contact, Clock::time_point now);
  void locate(int rank, Contact& contact);
  void advance(int rank, Contact& contact, short ready, Clock::time_point now);
  void read_answer(int rank, Contact& contact, bool goes_on, Clock::time_point now);
  bool read_reason(Contact& contact, bool goes_on, std::string& why) const;
  void read_frames(int rank, Contact& contact, Clock::time_point now);
  void attempt_failed(int rank, Contact& contact, Clock::time_point now);
  void open(int rank, Contact& contact, Clock::time_point now);
  void process_ended(Contact& contact, Clock::time_point now);
  void suspect(Contact& contact, const std::string& evidence, Clock::time_point now);
  void write(Contact& contact, const Frame& frame);
  void close_after(std::unique_ptr<Stream> stream);
  void check_times(Clock::time_point now);
  void forgive_own_sleep(Clock::time_point now);
  std::string describe(int rank) const { return options_.peers[static_cast<std::size_t>(rank)].describe(); }

  const OverlayOptions options_;
  const std::chrono::nanoseconds interval_;  // the time between two heartbeats
  PollLoop loop_;
  std::unique_ptr<meeting::Listener> listener_;  // null once this rank is fenced
  ControlEvents& events_;
  std::vector<std::optional<Address>> addresses_;  // by rank
  std::uint64_t job_ = 0;
  std::vector<Presence> presence_;
  std::vector<int> here_;  // ascending
  std::map<int, Contact> contacts_;
  std::list<Closing> closing_;
  std::deque<Lost> losses_;  // this rank reports them to new neighbours
  std::unordered_set<std::uint64_t> known_keys_;
  std::deque<std::uint64_t> key_order_;
  std::vector<int> waiting_;           // the rank that each descriptor of `collect` belongs to
  Clock::time_point now_{};            // when `run` was called last
  Clock::time_point both_tried_at_{};  // by then, both sides of each initial link have tried to connect
  Clock::time_point planned_ = never;
  Clock::time_point stop_at_ = never;
  std::uint32_t generation_ = 0;
  std::uint64_t next_key_ = 0;
  bool fenced_ = false;
  bool any_left_ = false;
};

}  // namespace tutti::liveness
