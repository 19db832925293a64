#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <tutti/deadline.h>

#include "transport/verbs/pipe.h"

namespace tutti::verbs {

class Lane;

// `LaneEvents` is notified about the pipe of a lane, as `PipeEvents` is.
class LaneEvents {
 public:
  virtual ~LaneEvents() = default;
  virtual void on_packet(Lane& lane, std::span<const std::byte> bytes) = 0;
  virtual void on_room(Lane& lane) = 0;
  virtual void on_written(Lane& lane, OutgoingFrame& frame) = 0;
  virtual void on_permitted(Lane& lane, std::uint32_t permit, std::uint32_t key) = 0;
  virtual void on_revoked(Lane& lane, std::uint32_t permit) = 0;
  virtual void on_lane_broken(Lane& lane, Code code, const std::string& why) = 0;
};

// A `Lane` is what a `Bundle` knows about one pair of ports, and the pipe between them.
class Lane final : public PipeEvents {
 public:
  enum class State {
    absent,   // there is no pipe
    offered,  // this side has a pipe, and has offered it to the peer
    probing,  // both sides have a pipe, and wait for packets to go both ways
    open,     // the pipe is in use
    leaving,  // this side has closed its pipe, and waits until the peer has done so
    gone,     // the pipe was in use once, and is not used again
  };

  Lane(LaneEvents& events, std::size_t pair) : index(pair), events_(events) {}

  // Returns whether the lane is in use, or may soon be.
  bool is_alive() const { return state == State::offered || state == State::probing || state == State::open; }

  const std::size_t index;  // the index of the pair of ports
  State state = State::absent;
  std::unique_ptr<Pipe> pipe;  // unless absent or gone; closed while leaving
  bool was_open = false;
  std::size_t kind = 0;                         // the index in `RailPair::kinds` of the kind to offer
  Deadline limit = Deadline::never();           // when to give up probing
  std::optional<std::uint32_t> peer_has_taken;  // how many packets; set once the peer has left
  // The lane has been given this many bytes of payloads. A lane that opens later than others starts with the
  // largest number of all lanes.
  std::uint64_t given = 0;

 private:
  void on_packet(std::span<const std::byte> bytes) override { events_.on_packet(*this, bytes); }
  void on_piece(std::uint32_t) override {}  // a pipe that is one of several has no such event
  void on_room() override { events_.on_room(*this); }
  void on_written(OutgoingFrame& frame) override { events_.on_written(*this, frame); }
  void on_permitted(std::uint32_t permit, const RemotePlace& place) override {
    events_.on_permitted(*this, permit, static_cast<std::uint32_t>(place.key));
  }
  void on_revoked(std::uint32_t permit) override { events_.on_revoked(*this, permit); }
  void on_pipe_broken(Code code, const std::string& why) override {
    events_.on_lane_broken(*this, code, why);
  }

  LaneEvents& events_;
};

}  // namespace tutti::verbs
