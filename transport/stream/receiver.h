#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "transport/channel.h"
#include "transport/stream/eager_pool.h"
#include "transport/stream/frame.h"
#include "transport/stream/limits.h"
#include "transport/stream/permits.h"
#include "transport/stream/sender.h"
#include "transport/stream/staging.h"

namespace tutti {

// A `StreamReceiver` is the receiving half of a StreamChannel. It checks every frame before it acts on it. It
// stores each payload in the receive's memory. If there is no receive yet, the payload is kept in a bounded
// buffer. A payload that no receive wants is discarded.
//
// An operation's `done` may call back into the channel, and even close the channel. So each function calls
// `done` last, or checks its own state again afterwards.
class StreamReceiver {
 public:
  StreamReceiver(Channel& channel, int peer, TransportOwner& owner, const StreamLimits& limits,
                 StreamSender& sender, ChannelCounters& counters);
  ~StreamReceiver();
  StreamReceiver(const StreamReceiver&) = delete;
  StreamReceiver& operator=(const StreamReceiver&) = delete;

  // Begins a frame of any type but `goodbye`. Returns null, or what is wrong with the frame.
  const char* begin(const FrameHeader& header);
  // Begins a frame whose payload is discarded, since the channel is closing.
  void begin_ignored(const FrameHeader& header);
  std::span<std::byte> direct();
  void direct_filled(std::size_t bytes) { advance(bytes); }
  std::size_t consume(std::span<const std::byte> bytes);
  std::size_t payload_left() const { return left_; }

  // Makes this receiver answer large messages with grants. Without this call, a `grant` or `written` frame
  // breaks the protocol. `permits` may be null (stream_channel.h).
  void write_remotely(RemoteMemory& remote, Permits* permits) {
    remote_ = &remote;
    permits_ = permits;
  }
  // Takes the next piece of a message for which memory was granted, like `begin` with a `written` frame.
  const char* written(std::uint32_t id);
  // A permit has been given. Returns false if a control frame could not be queued.
  [[nodiscard]] bool permitted(std::uint32_t permit, const RemotePlace& place);
  // A permit is over.
  void revoked(std::uint32_t permit);

  // Permits payloads on stripes (connections beside the first one: stream_channel.h). Without this call, a
  // frame that announces such a payload breaks the protocol.
  void accept_stripes() { accepts_stripes_ = true; }
  // These four functions handle a payload on a stripe. They correspond to `direct`, `direct_filled`,
  // `consume` and `payload_left`, which handle a payload that follows its header.
  std::span<std::byte> stripe_direct(std::uint8_t stripe) const;
  void stripe_filled(std::uint8_t stripe, std::size_t bytes);
  std::size_t stripe_consume(std::uint8_t stripe, std::span<const std::byte> bytes);
  std::size_t stripe_left(std::uint8_t stripe) const;
  bool expects_stripes() const;

  // `claim`, `discard` and `cancel` return false if a control frame could not be queued
  // (`StreamSender::control`). `failure` is the channel's status. If it is not ok, only messages that have
  // arrived completely can be claimed.
  [[nodiscard]] bool claim(Arrival& arrival, RecvOp& op, const Status& failure);
  [[nodiscard]] bool discard(Arrival& arrival, const Status& failure);
  [[nodiscard]] bool cancel(RecvOp& op, const Status& why);
  // Completes all receives with `why`, except those whose memory the peer may still write into.
  void fail_all(const Status& why);
  // Completes the receives that wait for the peer's writes to end. Call this when the peer writes no more.
  void end_writes();

 private:
  // `ending`: the receive ends when the peer no longer writes, and can no longer write, into the receive's
  // memory.
  enum class State : std::uint8_t { free, announced, claimed, dropped, ending };
  // `Granted` says for which part of a message this rank has granted memory, and where the peer may write
  // that part.
  struct Granted {
    std::uint64_t bytes = 0;  // counted from the beginning of the message
    bool in_place = false;    // whether in the receive's memory; otherwise in staging chunks
    std::size_t open = 0;     // the number of chunks that the peer may write into
    std::array<std::byte*, StreamLimits::max_chunks> chunks{};  // these chunks, in order
    std::unique_ptr<RegisteredMemory> registered;  // if the memory was registered for this receive
    Status why{};                                  // how a receive in the state `ending` ends
  };
  // An `Incoming` is a message that has been announced and has not ended.
  struct Incoming : Arrival {
    RecvOp* op = nullptr;
    std::byte* buffer = nullptr;   // payload of an eager message that arrived before its receive
    std::uint64_t announced = 0;   // bytes announced by the headers of its fragments, in order
    std::uint64_t received = 0;    // bytes received, in any order
    std::uint32_t on_stripes = 0;  // payloads announced on stripes that have not ended
    std::uint32_t id = 0;          // the sender's id of a large message
    std::uint32_t place = 0;       // index in incoming_, by which a RecvOp refers to it
    State state = State::free;
    bool eager = false;
    bool arriving = false;           // whether the frame of an eager message is still arriving
    std::optional<Granted> granted;  // if the message was answered with grants
    Incoming* next_free = nullptr;
  };

  // A `StripePayload` is a payload that has been announced on a stripe.
  struct StripePayload {
    Incoming* message = nullptr;  // null if the payload must be discarded
    std::uint64_t at = 0;         // offset of its next byte in the message
    std::size_t left = 0;
  };

  static constexpr const char* does_not_read = "frames, but does not read ours";
  const char* begin_eager(const FrameHeader& header);
  const char* begin_request(const FrameHeader& header);
  const char* begin_data(const FrameHeader& header);
  const char* begin_written(const FrameHeader& header);
  std::uint64_t next_piece(const Incoming& message) const;
  const char* take_piece(Incoming& message, std::uint64_t bytes);
  const char* begin_cancel(const FrameHeader& header);
  const char* begin_abort(const FrameHeader& header);
  const char* check_control(const FrameHeader& header) const;

  Incoming& take_incoming(const FrameHeader& header);
  void release(Incoming& message);
  Incoming* find_large(std::uint32_t id) const;
  void attach(Incoming& message, RecvOp& op);
  bool answer(Incoming& message);
  std::optional<bool> grant_in_place(Incoming& message);
  bool grant_whole(Incoming& message, const RemotePlace& place);
  bool grant_chunks(Incoming& message);
  bool grant_chunk(Incoming& message, std::byte* chunk);
  bool grant_to_waiting();
  bool use_chunk(Incoming& message, std::uint64_t offset, std::uint64_t bytes);
  static bool is_exposed(const Incoming& message);
  void let_end(Incoming& message, const Status& why);
  void withdraw(Incoming& message);
  void end_exposed(Incoming& message);
  void end_grants(Incoming& message);
  const char* announce_on_stripe(Incoming& message, const FrameHeader& header);
  void forget_on_stripes(const Incoming& message);
  static std::span<std::byte> place(const Incoming* message, std::uint64_t at, std::size_t left);
  std::size_t take(std::span<const std::byte> bytes);
  static std::size_t store(Incoming& message, std::uint64_t at, std::span<const std::byte> bytes);
  static std::size_t reduce(const Sink& sink, std::uint64_t at, std::span<const std::byte> bytes);
  void advance(std::size_t bytes);
  void end_frame();
  void end_eager(Incoming& message);
  void end_abort();
  void complete(Incoming& message);
  std::string describe() const { return owner_.peer(peer_).describe(); }

  Channel& channel_;
  const int peer_;
  TransportOwner& owner_;
  const StreamLimits limits_;
  StreamSender& sender_;
  ChannelCounters& counters_;

  RemoteMemory* remote_ = nullptr;  // null unless the pipe writes remotely
  Permits* permits_ = nullptr;
  Staging staging_;
  std::deque<Incoming*> waiting_;  // messages that wait for a staging chunk
  EagerPool pool_;
  std::deque<Incoming> incoming_;  // the memory of all messages
  Incoming* free_incoming_ = nullptr;
  std::vector<Incoming*> large_;  // large messages, by their index in the sender's table
  std::uint32_t unanswered_ = 0;
  std::uint64_t credit_held_ = 0;  // credit of eager messages that have not ended

  // The members from `frame_` to `ignored_`, and `text_`, describe the frame that is arriving.
  FrameHeader frame_;
  std::size_t left_ = 0;
  std::uint64_t at_ = 0;        // offset of its next byte in the message
  Incoming* target_ = nullptr;  // null if the payload is discarded or is the text of an abort
  bool ignored_ = false;
  bool accepts_stripes_ = false;
  std::string text_;
  std::vector<std::deque<StripePayload>> stripes_;
};

}  // namespace tutti
