#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/driver/timers.h"
#include "transport/verbs/context.h"
#include "transport/verbs/lane.h"
#include "transport/verbs/link.h"
#include "transport/verbs/pipe.h"

namespace tutti::verbs {

// A `Bundle` connects two ranks by several pipes, one for each pair of ports, and takes the place of a single
// pipe (docs/rdma.md). Packets go over one pipe, and the payloads of large messages go over all of them. If a
// pipe breaks, the other pipes send again everything that may not have arrived over it.
//
// A bundle reports the same events as a pipe. `on_pipe_broken` means that the last pipe is broken, or that
// the peer has broken the protocol.
class Bundle final : public LaneEvents, public Timer {
 public:
  // `first` is the index of the pair of ports whose pipe is connected already. `offers` says whether this
  // side offers the other pipes; exactly one side must do so. The link must outlive the calls of this class.
  Bundle(Context& context, int peer, Link& link, bool offers, PipeEvents& events);
  ~Bundle() override;
  // Takes over the pipe that is connected, and begins to connect the others.
  void start(std::size_t first, std::unique_ptr<Pipe> pipe);

  // Does the same as `Pipe::write`. For a remote write, returns `full` or `reading`.
  Pipe::Outcome write(OutgoingFrame& frame);
  // These two functions implement `Permits`. A permit has a memory window on each pipe, since a window
  // belongs to a single queue pair. If a pipe may still come, or has no windows, the permit is a registration
  // with all ports.
  Permits::Answer permit(std::uint32_t number, std::span<std::byte> memory, const RegisteredMemory* own,
                         RemotePlace& place);
  bool revoke(std::uint32_t number);
  // Handles a note about a rail. Returns false if the note breaks the protocol.
  bool on_note(const Note& note);
  // Closes all pipes (`Pipe::close`). No event follows.
  void close();

  void on_timer() override;

 private:
  // A `Write` is a frame whose payload is being written, or whose header must still be sent.
  struct Write {
    OutgoingFrame* frame;
    Lane* lane = nullptr;  // the lane over which the payload is written
    bool posted = false;   // all of the payload is posted
    bool over = false;     // the payload is in the peer's memory
  };
  struct Permit {
    std::unique_ptr<RegisteredMemory> registration;  // null if the permit has windows
    RemotePlace place;                               // has the keys of the windows that are bound
    std::vector<Lane*> binding = {};                 // the lanes whose windows are not bound yet
    std::vector<Lane*> lanes = {};                   // all lanes that have a window for the permit
    bool revoked = false;                            // the permit is over once it has no window
  };

  void on_packet(Lane& lane, std::span<const std::byte> bytes) override;
  void on_room(Lane& lane) override;
  void on_written(Lane& lane, OutgoingFrame& frame) override;
  void on_permitted(Lane& lane, std::uint32_t permit, std::uint32_t key) override;
  void on_revoked(Lane& lane, std::uint32_t permit) override;
  void on_lane_broken(Lane& lane, Code code, const std::string& why) override;

  // --- where the peer may write: bundle_permits.cc ---

  bool windows_are_ready() const;
  Permits::Answer bind(std::uint32_t number, std::span<std::byte> memory);
  void drop_windows(Lane& lane);
  void report(std::uint32_t number);

  // --- pipes that come and go: bundle_lanes.cc ---

  void offer(Lane& lane);
  Status make_pipe(Lane& lane, std::uint8_t kind);
  Status connect(Lane& lane, const End& end);
  bool take_offer(Lane& lane, const End& end);
  bool accepted(Lane& lane, const End& end);
  bool joined(Lane& lane);
  bool peer_left(Lane& lane, std::uint32_t taken);
  void open(Lane& lane);
  void leave(Lane& lane, const std::string& why);
  bool settle(Lane& lane);
  bool has_hope(const Lane& lane) const;
  void end_if_last();
  void choose_main();
  void send(NoteKind kind, const Lane& lane);

  // --- what is sent: bundle.cc ---

  void advance();
  void send_again();
  void post_writes();
  void send_headers();
  // Returns the lane that carries the packets, or null if that lane is not open.
  Lane* main() const { return main_ != nullptr && main_->state == Lane::State::open ? main_ : nullptr; }
  Lane* best_lane(const RemotePlace& place) const;
  std::size_t writes_over(const Lane& lane) const;

  Context& context_;
  const int peer_;
  Link& link_;
  const bool offers_;
  PipeEvents& events_;
  const std::vector<RailPair> pairs_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // one for each pair of ports
  Lane* main_ = nullptr;                      // carries the packets, or has carried the last ones
  std::deque<Packet> again_;                  // packets to send again, before all others
  std::deque<Write> writes_;                  // in the order in which their headers are sent
  std::map<std::uint32_t, Permit> permits_;   // except the one for staging chunks
  bool blocked_ = false;                      // `write` has returned `full`
  bool closed_ = false;
  bool advancing_ = false;  // advance() is on the stack
  bool advance_again_ = false;
  std::string last_why_;  // why a lane was left most recently
};

}  // namespace tutti::verbs
