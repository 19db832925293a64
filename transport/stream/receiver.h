#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "transport/channel.h"
#include "transport/stream/eager_pool.h"
#include "transport/stream/frame.h"
#include "transport/stream/limits.h"
#include "transport/stream/sender.h"

namespace tutti {

// A `StreamReceiver` is the receiving half of a StreamChannel: it checks every frame before it uses any of
// it, and delivers payloads: the receive's memory, a bounded buffer if there is no receive yet, or nowhere.
//
// `done` of an operation may call back into the channel, even close it; so each function calls it last, or
// looks at its own state again afterwards.
class StreamReceiver {
 public:
  StreamReceiver(Channel& channel, int peer, TransportOwner& owner, const StreamLimits& limits,
                 StreamSender& sender, ChannelCounters& counters);
  ~StreamReceiver();
  StreamReceiver(const StreamReceiver&) = delete;
  StreamReceiver& operator=(const StreamReceiver&) = delete;

  // Begins a frame of any type but `goodbye`. Returns what is wrong with it, or null.
  const char* begin(const FrameHeader& header);
  // Begins a frame whose payload will be discarded (the channel is closing).
  void begin_ignored(const FrameHeader& header);
  std::span<std::byte> direct();
  void direct_filled(std::size_t bytes) { advance(bytes); }
  std::size_t consume(std::span<const std::byte> bytes);
  std::size_t payload_left() const { return left_; }

  // The same for payloads on side connections.
  std::span<std::byte> side_direct(std::uint8_t side) const;
  void side_filled(std::uint8_t side, std::size_t bytes);
  std::size_t side_consume(std::uint8_t side, std::span<const std::byte> bytes);
  std::size_t side_left(std::uint8_t side) const;
  bool expects_sides() const;

  // `failure`: the channel's status; if it is not ok, only messages that have already arrived can be
  // received.
  [[nodiscard]] bool claim(Arrival& arrival, RecvOp& op, const Status& failure);
  [[nodiscard]] bool discard(Arrival& arrival, const Status& failure);
  [[nodiscard]] bool cancel(RecvOp& op, const Status& why);
  void fail_all(const Status& why);

 private:
  enum class State : std::uint8_t { free, announced, claimed, dropped };
  // A message that has been announced and is not over.
  struct Incoming : Arrival {
    RecvOp* op = nullptr;
    std::byte* buffer = nullptr;  // eager, came before its receive
    std::uint64_t announced = 0;  // by the headers of its fragments, in order
    std::uint64_t received = 0;   // in any order
    std::uint32_t on_sides = 0;   // payloads announced for side connections that are not over
    std::uint32_t id = 0;         // large: the sender's name for it
    std::uint32_t place = 0;      // in incoming_, so that a RecvOp can name it
    State state = State::free;
    bool eager = false;
    bool arriving = false;  // eager: its frame has not ended
    Incoming* next_free = nullptr;
  };

  // A payload that comes, or will come, by a side connection.
  struct SidePayload {
    Incoming* message = nullptr;  // null: it is not wanted any more
    std::uint64_t at = 0;         // where its next byte belongs
    std::size_t left = 0;
  };

  const char* begin_eager(const FrameHeader& header);
  const char* begin_request(const FrameHeader& header);
  const char* begin_data(const FrameHeader& header);
  const char* begin_cancel(const FrameHeader& header);
  const char* begin_abort(const FrameHeader& header);
  const char* check_control(const FrameHeader& header) const;

  Incoming& take_incoming(const FrameHeader& header);
  void release(Incoming& message);
  Incoming* find_large(std::uint32_t id) const;
  void attach(Incoming& message, RecvOp& op);
  const char* announce_on_side(Incoming& message, const FrameHeader& header);
  void forget_on_sides(const Incoming& message);
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

  EagerPool pool_;
  std::deque<Incoming> incoming_;  // storage
  Incoming* free_incoming_ = nullptr;
  std::vector<Incoming*> large_;  // by the sender's place
  std::uint32_t unanswered_ = 0;
  std::uint64_t credit_held_ = 0;  // of eager messages that are not over

  // The frame under way.
  FrameHeader frame_;
  std::size_t left_ = 0;
  std::uint64_t at_ = 0;        // where in the message its next byte belongs
  Incoming* target_ = nullptr;  // null: nowhere, or the text of an abort
  bool ignored_ = false;
  std::string text_;
  std::vector<std::deque<SidePayload>> sides_;
};

}  // namespace tutti
