#include <algorithm>

#include "transport/stream/limits.h"
#include "transport/tcp/channel.h"

// This file spreads the payloads of large messages over several connections. All headers use the first one,
// in order. That keeps everything in order, and tells the other side which payload arrives on which
// connection.
namespace tutti::tcp {
namespace {

// Messages from this size on are worth separate connections.
constexpr std::uint64_t shared_bytes = 512 * 1024;
// The amount of work for one side before others get their turn.
constexpr std::size_t side_read_budget = 512 * 1024;

}  // namespace

// --- writing ---

std::size_t Channel::socket_count(const Address& theirs) const {
  const auto wanted = static_cast<std::size_t>(context_.options.sockets);
  const std::size_t pairs = std::min(context_.address.endpoints.size(), theirs.endpoints.size());
  return std::min<std::size_t>(wanted == 0 ? pairs : wanted, std::size_t{max_sides} + 1);
}

void Channel::open_sides() {
  sides_opened_ = true;
  const auto address = published_by(context_.peer(peer()));
  if (!address) return;
  for (std::size_t i = 1; i < socket_count(*address); ++i) {
    outgoing_.push_back(
        std::make_unique<OutgoingSide>(context_, peer(), static_cast<std::uint8_t>(i), *this));
  }
  for (auto& side : outgoing_) side->connect(*address, connect_timeout_);
}

void Channel::share_out(OutgoingFrame& frame) {
  if (frame.op == nullptr || frame.payload.size() < StreamLimits::min_side_payload) return;
  if (!sides_opened_ && frame.op->header.bytes >= shared_bytes) open_sides();
  if (outgoing_.empty()) return;
  turn_ = (turn_ + 1) % (outgoing_.size() + 1);
  if (turn_ == 0 || !outgoing_[turn_ - 1]->has_room()) return;
  frame.side = static_cast<std::uint8_t>(turn_);
  set_side(frame.header, frame.side);
  outgoing_[turn_ - 1]->add(frame);
}

void Channel::write_sides() {
  for (std::size_t i = 0; i < outgoing_.size() && open_; ++i) outgoing_[i]->write();
}

void Channel::on_side_written(OutgoingFrame& frame) {
  if (frame.written == frame.header.size()) frame_written(frame);
}

void Channel::on_side_room() {
  if (open_) write_frames();
}

// --- reading ---

Verdict Channel::judge_side(std::uint8_t number) const {
  if (!open_ || !status().ok()) return Verdict::gone;
  const auto same = [number](const auto& side) { return side->number() == number; };
  return std::any_of(incoming_.begin(), incoming_.end(), same) ? Verdict::connected : Verdict::welcome;
}

void Channel::attach_side(std::uint8_t number, Pipe pipe) {
  incoming_.push_back(std::make_unique<IncomingSide>(context_, number, *this, std::move(pipe)));
  const Status watched = incoming_.back()->watch();
  if (!watched.ok()) pipe_failed(watched);
}

// Reads the payloads that headers on the first connection have announced since.
void Channel::read_sides() {
  for (std::size_t i = 0; i < incoming_.size() && open_; ++i) {
    if (side_left(incoming_[i]->number()) == 0) continue;
    incoming_[i]->pause(false);
    read_side(*incoming_[i]);
  }
}

void Channel::on_side_readable(IncomingSide& side) {
  if (side_left(side.number()) == 0) {
    side.pause(true);
  } else {
    read_side(side);
  }
}

void Channel::read_side(IncomingSide& side) {
  const std::uint8_t number = side.number();
  for (std::size_t budget = side_read_budget; open_ && (budget > 0 || side.has_pending());) {
    const std::size_t left = side_left(number);
    if (left == 0) return;
    const std::span<std::byte> place = side_direct(number);
    std::span<std::byte> scratch(context_.scratch.get(), std::min(left, Context::scratch_bytes));
    std::size_t got = 0;
    if (!place.empty()) {
      got = side.read(place);
      if (open_ && got > 0) side_filled(number, got);
    } else {
      // An element may have been cut in two: its first half has been kept.
      const std::size_t kept = side.restore(scratch);
      got = side.read(scratch.subspan(kept));
      if (!open_) return;
      const auto bytes = scratch.first(kept + got);
      side.keep(bytes.subspan(side_consume(number, bytes)));
    }
    if (got == 0) return;
    budget -= std::min(budget, got);
  }
}

// The peer closes all its connections at once; the first one tells why, if there is a reason.
void Channel::on_side_lost(const std::string& why) {
  if (!open_ || !status().ok()) return;
  read_frames();
  if (open_ && status().ok()) pipe_failed(lost(why));
}

}  // namespace tutti::tcp
