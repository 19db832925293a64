#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>

#include <tutti/log.h>

#include "transport/verbs/bundle.h"

// This file connects the pipes of a bundle, and leaves those that break.
namespace tutti::verbs {

void Bundle::start(std::size_t first, std::unique_ptr<Pipe> pipe) {
  Lane& lane = *lanes_[first];
  lane.pipe = std::move(pipe);
  lane.pipe->set_events(lane);
  open(lane);
  for (const auto& other : lanes_) {
    if (offers_ && !closed_ && other->state == Lane::State::absent) offer(*other);
  }
}

void Bundle::send(NoteKind kind, const Lane& lane) {
  Note note;
  note.kind = kind;
  note.rail = static_cast<std::uint32_t>(lane.index);
  if (kind == NoteKind::offer || kind == NoteKind::accept) note.end = lane.pipe->end();
  if (kind == NoteKind::left && lane.pipe != nullptr) note.taken = lane.pipe->taken();
  link_.send(note);
}

Status Bundle::make_pipe(Lane& lane, std::uint8_t kind) {
  const Gid* const gid = context_.gid_of(pairs_[lane.index].ours, kind);
  if (gid == nullptr) return Status(Code::unsupported, "this rank has no address of that kind");
  auto pipe = context_.make_pipe(pairs_, lane.index, *gid, lane);
  if (!pipe.ok()) return pipe.status();
  lane.pipe = *std::move(pipe);
  return {};
}

// Offers a pipe of the first kind of address, from `Lane::kind` on, for which this rank can make one.
void Bundle::offer(Lane& lane) {
  const std::vector<std::uint8_t>& kinds = pairs_[lane.index].kinds;
  for (; lane.kind < kinds.size(); ++lane.kind) {
    const Status made = make_pipe(lane, kinds[lane.kind]);
    if (made.ok()) {
      lane.state = Lane::State::offered;
      return send(NoteKind::offer, lane);
    }
    log::info("verbs: a rail to ", context_.describe(peer_), " is left out: ", made.message());
  }
}

Status Bundle::connect(Lane& lane, const End& end) {
  if (context_.dead_paths.contains(lane.pipe->gid(), end))
    return Status(Code::unsupported, "no packet has passed between these addresses before");
  const Status connected = lane.pipe->connect(end);
  if (connected.code() == Code::unsupported) context_.dead_paths.add(lane.pipe->gid(), end);
  return connected;
}

bool Bundle::take_offer(Lane& lane, const End& end) {
  if (offers_ || lane.state != Lane::State::absent) return false;
  lane.state = Lane::State::probing;
  Status taken = make_pipe(lane, end.kind);
  if (taken.ok()) taken = connect(lane, end);
  if (taken.ok()) {
    send(NoteKind::accept, lane);
  } else {
    leave(lane, taken.message());
  }
  return taken.code() != Code::protocol_error;
}

bool Bundle::accepted(Lane& lane, const End& end) {
  if (!offers_) return false;
  if (lane.state == Lane::State::leaving) return true;
  if (lane.state != Lane::State::offered) return false;
  const Status connected = connect(lane, end);
  if (!connected.ok()) {
    leave(lane, connected.message());
    return connected.code() != Code::protocol_error;
  }
  lane.state = Lane::State::probing;
  lane.limit = Deadline::after(context_.options.probe_timeout);
  context_.timers.set(*this, Deadline::after(context_.options.probe_interval));
  lane.pipe->probe();
  return true;
}

// Sends another empty packet over each lane that waits for an answer, in case the earlier packet was lost.
void Bundle::on_timer() {
  for (const auto& lane : lanes_) {
    if (closed_) return;
    if (lane->state != Lane::State::probing) continue;
    if (lane->limit.expired()) {
      context_.dead_paths.add(lane->pipe->gid(), lane->pipe->theirs());
      leave(*lane, "no packet went both ways in time");
    } else {
      lane->pipe->probe();
    }
  }
  const auto probing = [](const auto& lane) { return lane->state == Lane::State::probing; };
  if (!closed_ && std::ranges::any_of(lanes_, probing))
    context_.timers.set(*this, Deadline::after(context_.options.probe_interval));
}

// The side that has offered the pipe sends an empty packet, and the other side answers it. If the packet is
// not empty, the peer already uses the lane, and its note `joined` is still on its way.
void Bundle::on_packet(Lane& lane, std::span<const std::byte> bytes) {
  if (lane.state == Lane::State::probing) {
    if (!offers_ && bytes.empty()) return lane.pipe->probe();
    if (offers_) send(NoteKind::joined, lane);
    open(lane);
  }
  if (!bytes.empty()) events_.on_packet(bytes);
}

bool Bundle::joined(Lane& lane) {
  if (offers_) return false;
  if (lane.state == Lane::State::probing) open(lane);
  return true;
}

void Bundle::open(Lane& lane) {
  lane.state = Lane::State::open;
  lane.was_open = true;
  for (const auto& other : lanes_) lane.given = std::max(lane.given, other->given);
  log::debug("verbs: rail ", lane.index, " to ", context_.describe(peer_), " is in use");
  choose_main();
  advance();
}

// Packets stay on one lane until both sides have left it, since the order of packets is kept within a lane
// only.
void Bundle::choose_main() {
  for (const auto& lane : lanes_) {
    if (main_ == nullptr && lane->state == Lane::State::open) main_ = lane.get();
  }
}

bool Bundle::on_note(const Note& note) {
  if (note.rail >= lanes_.size()) return false;
  Lane& lane = *lanes_[note.rail];
  switch (note.kind) {
    case NoteKind::offer:
      return take_offer(lane, note.end);
    case NoteKind::accept:
      return accepted(lane, note.end);
    case NoteKind::joined:
      return joined(lane);
    case NoteKind::left:
      return peer_left(lane, note.taken);
    default:
      return false;
  }
}

void Bundle::on_lane_broken(Lane& lane, Code code, const std::string& why) {
  if (code == Code::protocol_error) return events_.on_pipe_broken(code, why);
  leave(lane, why);
}

bool Bundle::peer_left(Lane& lane, std::uint32_t taken) {
  if (lane.state == Lane::State::absent || lane.state == Lane::State::gone || lane.peer_has_taken)
    return false;
  lane.peer_has_taken = taken;
  if (lane.state != Lane::State::leaving) leave(lane, "the peer has left this rail");
  return closed_ || settle(lane);
}

// Destroys this side's queue pair. From then on, no packet and no write of the peer arrives over this lane,
// and the device reads no memory for the lane.
void Bundle::leave(Lane& lane, const std::string& why) {
  if (!lane.is_alive()) return;
  if (lane.state == Lane::State::open) {
    log::warn("verbs: a rail to ", context_.describe(peer_), " is left: ", why);
  } else {
    log::info("verbs: a rail to ", context_.describe(peer_), " cannot be used: ", why);
  }
  last_why_ = why;
  if (lane.pipe != nullptr) lane.pipe->close();
  lane.state = Lane::State::leaving;
  send(NoteKind::left, lane);
  end_if_last();
  drop_windows(lane);
}

// Returns whether the lane is in use, or may come into use. The side that offers the pipes knows when it has
// offered all of them. The other side does not know that, so it keeps hoping for each lane that was never
// open. If there is no hope, the offering side ends the link.
bool Bundle::has_hope(const Lane& lane) const {
  if (lane.is_alive()) return true;
  if (lane.was_open) return false;
  return !offers_ || (lane.state == Lane::State::leaving && lane.kind + 1 < pairs_[lane.index].kinds.size());
}

void Bundle::end_if_last() {
  if (std::ranges::any_of(lanes_, [&](const auto& lane) { return has_hope(*lane); })) return;
  events_.on_pipe_broken(Code::peer_lost, last_why_);
}

// Both sides have left the lane, so nothing arrives over it any more. This function lets the other lanes send
// everything again that has not arrived.
bool Bundle::settle(Lane& lane) {
  if (&lane == main_) {
    std::optional<std::deque<Packet>> packets = lane.pipe->not_taken(*lane.peer_has_taken);
    if (!packets) return false;
    again_.insert(again_.begin(), std::make_move_iterator(packets->begin()),
                  std::make_move_iterator(packets->end()));
    main_ = nullptr;
  }
  for (Write& write : writes_) {
    if (write.lane != &lane || write.over) continue;
    write.frame->written = 0;
    write.lane = nullptr;
    write.posted = false;
  }
  context_.discard(std::move(lane.pipe));
  lane.state = lane.was_open ? Lane::State::gone : Lane::State::absent;
  lane.peer_has_taken.reset();
  if (lane.state == Lane::State::absent && offers_) {
    ++lane.kind;
    offer(lane);
    end_if_last();
  }
  choose_main();
  advance();
  return true;
}

}  // namespace tutti::verbs
