#include "transport/verbs/bundle.h"

#include <algorithm>
#include <utility>

namespace tutti::verbs {
namespace {

// These frames answer frames of the peer. They say nothing about what this rank writes, so they need not wait
// for its writes.
bool may_overtake(const OutgoingFrame& frame) {
  switch (type_of(frame.header)) {
    case FrameType::clear:
    case FrameType::grant:
    case FrameType::credit:
    case FrameType::refuse:
      return frame.payload.empty();
    default:
      return false;
  }
}

}  // namespace

Bundle::Bundle(Context& context, int peer, Link& link, bool offers, PipeEvents& events)
    : context_(context),
      peer_(peer),
      link_(link),
      offers_(offers),
      events_(events),
      pairs_(context.pairs_with(peer)) {
  for (std::size_t i = 0; i < pairs_.size(); ++i) lanes_.push_back(std::make_unique<Lane>(*this, i));
}

Bundle::~Bundle() { close(); }

void Bundle::close() {
  closed_ = true;
  context_.timers.cancel(*this);
  for (const auto& lane : lanes_) {
    context_.discard(std::move(lane->pipe));
    lane->state = Lane::State::gone;
  }
  main_ = nullptr;
  writes_.clear();
  again_.clear();
  permits_.clear();
}

Pipe::Outcome Bundle::write(OutgoingFrame& frame) {
  blocked_ = true;
  if (frame.route == PayloadRoute::remote_write) {
    if (writes_.size() >= Pipe::most_reading * lanes_.size()) return Pipe::Outcome::full;
    blocked_ = false;
    writes_.push_back({&frame});
    advance();
    return Pipe::Outcome::reading;
  }
  send_again();
  if (main() == nullptr || !again_.empty() || (!writes_.empty() && !may_overtake(frame)))
    return Pipe::Outcome::full;
  const Pipe::Outcome outcome = main_->pipe->write(frame);
  blocked_ = outcome == Pipe::Outcome::full;
  return outcome;
}

void Bundle::on_room(Lane&) { advance(); }

void Bundle::on_written(Lane&, OutgoingFrame& frame) {
  const auto found = std::ranges::find(writes_, &frame, &Write::frame);
  if (found != writes_.end()) found->over = true;
  advance();
}

// Sends what can be sent. An operation that ends meanwhile may call this function again, to send more.
void Bundle::advance() {
  advance_again_ = true;
  if (advancing_) return;
  advancing_ = true;
  while (std::exchange(advance_again_, false) && !closed_) {
    send_again();
    post_writes();
    send_headers();
    if (!closed_ && std::exchange(blocked_, false)) events_.on_room();
  }
  advancing_ = false;
}

// Sends packets again that were sent over a pipe that has broken. The other pipe may have smaller packets.
// The size of its largest packet is a multiple of 64 bytes, so headers and elements stay whole.
void Bundle::send_again() {
  while (main() != nullptr && !again_.empty()) {
    Packet& packet = again_.front();
    const std::size_t bytes = std::min<std::size_t>(packet.size(), main_->pipe->packet_bytes());
    if (!main_->pipe->send_again(std::span(packet).first(bytes))) return;
    packet.erase(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(bytes));
    if (packet.empty()) again_.pop_front();
  }
}

void Bundle::post_writes() {
  for (std::size_t i = 0; i < writes_.size(); ++i) {
    Write& write = writes_[i];
    if (write.posted) continue;
    if (write.lane == nullptr) {
      write.lane = best_lane(write.frame->place);
      if (write.lane == nullptr) return;
      write.lane->given += write.frame->payload.size();
    }
    if (write.lane->state != Lane::State::open) continue;
    const bool posted = write.lane->pipe->write_payload(*write.frame) == Pipe::Outcome::reading;
    if (closed_) return;
    write.posted = posted;
  }
}

// Sends the headers of the payloads that are in the peer's memory. A header waits for all earlier ones.
void Bundle::send_headers() {
  while (main() != nullptr && again_.empty() && !writes_.empty() && writes_.front().over) {
    OutgoingFrame& frame = *writes_.front().frame;
    if (!main_->pipe->send_again(frame.header)) return;
    writes_.pop_front();
    events_.on_written(frame);
  }
}

std::size_t Bundle::writes_over(const Lane& lane) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(writes_, [&](const Write& write) { return write.lane == &lane && !write.over; }));
}

// Returns the lane that has been given the fewest bytes so far, among those over which the peer lets this
// rank write there. Returns null if all of these lanes have enough to do. A slower lane has enough to do more
// often, and so is given less.
Lane* Bundle::best_lane(const RemotePlace& place) const {
  Lane* best = nullptr;
  for (const auto& lane : lanes_) {
    if (lane->state != Lane::State::open || key_of(place, pairs_[lane->index].theirs) == 0) continue;
    if (writes_over(*lane) >= Pipe::most_reading) continue;
    if (best == nullptr || lane->given < best->given) best = lane.get();
  }
  return best;
}

}  // namespace tutti::verbs
