#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "transport/stream/frame.h"
#include "transport/stream/permits.h"
#include "transport/verbs/kept_packets.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/note.h"
#include "transport/verbs/pool.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/settings.h"
#include "transport/verbs/windows.h"

namespace tutti::verbs {

// `PipeEvents` is notified about a pipe, on the driving thread. Each of these functions may close the pipe,
// but must not destroy it.
class PipeEvents {
 public:
  virtual ~PipeEvents() = default;
  // A packet has arrived, with the next bytes of the peer's frames. The packet is empty if the peer only
  // returns credit, or tests whether packets arrive.
  virtual void on_packet(std::span<const std::byte> bytes) = 0;
  // The peer has written the next piece of the message with this id into granted memory.
  virtual void on_piece(std::uint32_t id) = 0;
  // There may be room again after `Pipe::write` has returned `full`.
  virtual void on_room() = 0;
  // A frame for which `Pipe::write` returned `reading` has left.
  virtual void on_written(OutgoingFrame& frame) = 0;
  // A permit for which the answer was `later` (`Permits`) has been given.
  virtual void on_permitted(std::uint32_t permit, const RemotePlace& place) = 0;
  // A permit is over.
  virtual void on_revoked(std::uint32_t permit) = 0;
  // The pipe is broken. The code is `peer_lost`, or `protocol_error` if the peer is to blame.
  virtual void on_pipe_broken(Code code, const std::string& why) = 0;
};

struct PipeOptions {
  Settings settings;
  std::uint32_t slots;
  std::uint32_t slot_bytes;
  std::size_t pair = 0;        // the index of the pair of ports that the pipe connects
  std::size_t their_rail = 0;  // says which key of a place to use (`key_of`); 0 if there is one rail only
  std::size_t our_rail = 0;    // the index of this rank's port
  // This is true if the pipe is one of several between two ranks. Such a pipe keeps packets until the peer
  // has dealt with them, and gives its permits only once their windows are bound.
  bool shared = false;
};

// A `Pipe` connects two ranks by a queue pair. It sends frames as packets, each at most as large as one of
// the peer's receive slots, and writes payloads into memory that the peer has granted. The last write of a
// piece carries the id of its message, and so tells the peer that the piece is complete.
//
// The peer posts a receive for each of its slots. A packet, or the last write of a piece, takes one of these
// receives. Each packet also says how many receives of the other side its sender has dealt with so far. So
// each side knows how many packets it may send, and no packet arrives without a receive for it.
class Pipe final : public QueueUser {
 public:
  // The device reads at most this many payloads at a time. So a small message waits behind no more payloads
  // than these.
  static constexpr std::uint32_t most_reading = 4;

  enum class Outcome {
    full,     // there is no room or no credit; the same frame must be passed again after `on_room`
    left,     // the whole frame has been copied or sent; its payload is not needed any more
    reading,  // the device reads the payload until `on_written`
  };

  // Makes a pipe whose receives are posted, but whose queue pair is not connected yet. `memory` is this
  // rank's registered memory, from which payloads are written without a copy.
  static Result<std::unique_ptr<Pipe>> create(Rail& rail, const Memory& memory, const PipeOptions& options,
                                              const Gid& gid, PipeEvents& events);
  ~Pipe() override;
  // Returns how many completions may be waiting at the same time for a pipe with `slots` receive slots.
  static std::uint64_t most_requests(std::uint32_t slots);

  void set_events(PipeEvents& events) { events_ = &events; }
  // Returns the index of the pair of ports that this pipe connects.
  std::size_t pair() const { return options_.pair; }
  // Returns the address of this rank that the pipe uses.
  const Gid& gid() const { return gid_; }
  // Returns the peer's end, once connected.
  const End& theirs() const { return theirs_; }
  // Returns this end, for the peer.
  End end() const;
  // Connects the queue pair with the peer's. Fails with `unsupported` if this kind of address does not work.
  Status connect(const End& theirs);
  // Sends an empty packet, if there is room and credit. It shows the peer that packets arrive, and returns
  // credit.
  void probe() {
    if (credit() > 0 && has_room(1)) send_packet({});
  }
  // Sends as much of the frame as there is room for.
  Outcome write(OutgoingFrame& frame);
  // These two functions implement `Permits`. Any permit of a shared pipe is given later, since the peer may
  // use it before the packets that are sent over this pipe arrive.
  Permits::Answer permit(std::uint32_t number, std::span<std::byte> memory, const RegisteredMemory* own,
                         RemotePlace& place);
  bool revoke(std::uint32_t number);

  // --- for a pipe that is one of several between two ranks ---

  // Writes the payload of a frame into memory that the peer has granted, but does not send the header.
  // Returns `reading` once everything is posted. Then `on_written` is called when the payload is in the
  // peer's memory.
  Outcome write_payload(OutgoingFrame& frame);
  // Returns whether a permit would get a window, at once or once another permit is over.
  bool has_windows() {
    return rail_.domain()->has_windows() && (windows_.free() != nullptr || !windows_.empty());
  }
  // Sends these bytes as one packet. There must be at most `packet_bytes` of them. Returns false if there is
  // no room or no credit.
  bool send_again(std::span<const std::byte> bytes);
  // Returns the size of the largest packet that this end sends.
  std::uint32_t packet_bytes() const { return packet_bytes_; }
  // Returns how many packets of the peer have been passed to `on_packet`.
  std::uint32_t taken() const { return taken_; }
  // Returns the packets that the peer has not taken, if it has taken `count` packets in total. Returns
  // nothing if that number is impossible.
  std::optional<std::deque<Packet>> not_taken(std::uint32_t count);

  // Ends everything. When `close` returns, the device no longer touches any memory for this pipe, neither for
  // the pipe's own work requests nor for the peer's writes. No event follows. The memory of the last packet
  // stays valid until the pipe is destroyed.
  void close();

  void on_completion(const ibv_wc& completion) override;
  void on_queue_error(const std::string& why) override;

 private:
  // The number of a receive request has this bit, and its other bits are the slot. Numbers of other requests
  // lack this bit.
  static constexpr std::uint64_t receive_bit = std::uint64_t{1} << 63;
  // Frames leave this much credit unused, so that a packet that returns credit can always be sent. Otherwise
  // both sides could wait for credit for ever.
  static constexpr std::uint32_t credit_reserve = 1;

  using Parts = std::array<std::span<const std::byte>, 2>;
  struct Posted {
    OutgoingFrame* reading = nullptr;    // the frame whose payload the device reads
    bool slot = false;                   // the request uses the oldest send slot that is in use
    Windows::Window* bound = nullptr;    // the window that the request binds, if that must be reported
    Windows::Window* revoked = nullptr;  // the window that the request invalidates
    bool operator==(const Posted&) const = default;
  };

  Pipe(Rail& rail, const Memory& memory, const PipeOptions& options, const Gid& gid, PipeEvents& events);
  Status create_queue_pair();
  Status post_receives();
  Status move_to_init();
  Status move_to_receive(const End& theirs);
  Status move_to_send();
  Status modify(ibv_qp_attr& attributes, int mask, const char* state);

  std::uint32_t credit() const { return theirs_.slots - (sent_ - acknowledged_); }
  std::uint32_t slots_in_use() const { return slots_taken_ - slots_freed_; }
  // Returns whether there is room for requests other than those for windows, which have room of their own.
  bool has_room(std::uint64_t requests) const {
    return next_ - retired_ + requests + Windows::most_requests <= depth_;
  }
  // Returns a free send slot, or an empty span.
  std::span<std::byte> free_slot() const;

  bool post(ibv_send_wr& request, const Posted& posted);
  bool post_copy(ibv_send_wr& request, const Parts& parts, Posted posted);
  bool post_receive(std::uint32_t slot);
  bool send_packet(const Parts& parts);
  Outcome send(OutgoingFrame& frame);
  Outcome write_remotely(OutgoingFrame& frame);
  Outcome write_in_place(OutgoingFrame& frame, std::uint32_t key);
  ibv_send_wr write_request(const OutgoingFrame& frame, bool last) const;
  bool post_payload(OutgoingFrame& frame);
  void return_credit();

  bool bind(Windows::Window& window, const Windows::Waiting& wanted, RemotePlace& place);
  void revoked(Windows::Window& window);

  void received(std::uint32_t slot, const ibv_wc& completion);
  void retire(std::uint64_t request);
  void fail(const ibv_wc& completion);
  void broken(Code code, const std::string& why);

  Rail& rail_;
  const Memory& memory_;
  const PipeOptions options_;
  const Gid gid_;
  PipeEvents* events_;
  std::unique_ptr<Pool> pool_;
  Windows windows_;
  ibv_qp* queue_pair_ = nullptr;
  std::uint32_t first_sequence_ = 0;
  std::uint32_t max_inline_ = 0;
  std::uint32_t packet_bytes_ = 0;  // the largest packet that this end sends
  End theirs_;

  // Work requests are numbered. Those from `retired_` to `next_` have been posted and may not have ended.
  std::uint64_t next_ = 0;
  std::uint64_t retired_ = 0;
  std::uint64_t unsignaled_ = 0;  // requests since the last one that will report its completion
  std::uint32_t depth_ = 0;
  std::vector<Posted> posted_;  // a ring, by number
  std::uint32_t slots_taken_ = 0;
  std::uint32_t slots_freed_ = 0;
  std::uint32_t reading_ = 0;  // payloads that the device reads
  bool full_ = false;          // there was no room for something since the last `on_room`

  // These counters wrap around.
  std::uint32_t sent_ = 0;          // packets of this side, and last writes of pieces
  std::uint32_t acknowledged_ = 0;  // packets of this side that the peer has dealt with
  std::uint32_t taken_ = 0;         // those of the peer for which `on_packet` or `on_piece` was called
  std::uint32_t dealt_with_ = 0;    // those of the peer whose slots are posted again
  std::uint32_t told_ = 0;          // the value of `dealt_with_` that the peer was last told

  KeptPackets kept_;  // empty unless `PipeOptions::shared` is set
};

}  // namespace tutti::verbs
