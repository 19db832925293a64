#include <algorithm>

#include "transport/stream/limits.h"
#include "transport/tcp/channel.h"

// This file spreads the payloads of large messages over several connections. All headers travel over the
// first connection, in order. That preserves the order of messages, and tells the other side which payload
// arrives on which connection.
namespace tutti::tcp {
namespace {

// A message of at least this size opens the stripes.
constexpr std::uint64_t shared_bytes = 512 * 1024;
// This bounds the work for one stripe before others have their turn.
constexpr std::size_t stripe_read_budget = 512 * 1024;

}  // namespace

// --- writing ---

std::size_t Channel::socket_count(const Address& theirs) const {
  const auto wanted = static_cast<std::size_t>(context_.options.sockets);
  const std::size_t pairs = std::min(context_.address.endpoints.size(), theirs.endpoints.size());
  return std::min<std::size_t>(wanted == 0 ? pairs : wanted, std::size_t{max_stripes} + 1);
}

void Channel::open_stripes() {
  stripes_opened_ = true;
  const auto address = published_by(context_.peer(peer()));
  if (!address) return;
  for (std::size_t i = 1; i < socket_count(*address); ++i) {
    outgoing_.push_back(
        std::make_unique<OutgoingStripe>(context_, peer(), static_cast<std::uint8_t>(i), *this));
  }
  for (auto& stripe : outgoing_) stripe->connect(*address, connect_timeout_);
}

void Channel::share_out(OutgoingFrame& frame) {
  if (frame.op == nullptr || frame.payload.size() < StreamLimits::min_stripe_payload) return;
  if (!stripes_opened_ && frame.op->header.bytes >= shared_bytes) open_stripes();
  if (outgoing_.empty()) return;
  turn_ = (turn_ + 1) % (outgoing_.size() + 1);
  if (turn_ == 0 || !outgoing_[turn_ - 1]->has_room()) return;
  frame.stripe = static_cast<std::uint8_t>(turn_);
  set_stripe(frame.header, frame.stripe);
  outgoing_[turn_ - 1]->add(frame);
}

void Channel::write_stripes() {
  for (std::size_t i = 0; i < outgoing_.size() && open_; ++i) outgoing_[i]->write();
}

void Channel::on_stripe_written(OutgoingFrame& frame) {
  if (frame.written == frame.header.size()) frame_written(frame);
}

void Channel::on_stripe_room() {
  if (open_) write_frames();
}

// --- reading ---

Verdict Channel::judge_stripe(std::uint8_t number) const {
  if (!open_ || !status().ok()) return Verdict::gone;
  const auto same = [number](const auto& stripe) { return stripe->number() == number; };
  return std::any_of(incoming_.begin(), incoming_.end(), same) ? Verdict::connected : Verdict::welcome;
}

void Channel::attach_stripe(std::uint8_t number, Pipe pipe) {
  incoming_.push_back(std::make_unique<IncomingStripe>(context_, number, *this, std::move(pipe)));
  const Status watched = incoming_.back()->watch();
  if (!watched.ok()) pipe_failed(watched);
}

// Reads, on every stripe, what has arrived of the announced payloads. Headers on the first connection may
// just have announced payloads on a paused stripe, so this function also ends that pause.
void Channel::read_stripes() {
  for (std::size_t i = 0; i < incoming_.size() && open_; ++i) {
    if (stripe_left(incoming_[i]->number()) == 0) continue;
    incoming_[i]->pause(false);
    read_stripe(*incoming_[i]);
  }
}

void Channel::on_stripe_readable(IncomingStripe& stripe) {
  if (stripe_left(stripe.number()) == 0) {
    stripe.pause(true);
  } else {
    read_stripe(stripe);
  }
}

void Channel::read_stripe(IncomingStripe& stripe) {
  const std::uint8_t number = stripe.number();
  for (std::size_t budget = stripe_read_budget; open_ && (budget > 0 || stripe.has_pending());) {
    const std::size_t left = stripe_left(number);
    if (left == 0) return;
    const std::span<std::byte> place = stripe_direct(number);
    std::span<std::byte> scratch(context_.scratch.get(), std::min(left, Context::scratch_bytes));
    std::size_t got = 0;
    if (!place.empty()) {
      got = stripe.read(place);
      if (open_ && got > 0) stripe_filled(number, got);
    } else {
      // The read may continue an incomplete element, whose first part has been kept.
      const std::size_t kept = stripe.restore(scratch);
      got = stripe.read(scratch.subspan(kept));
      if (!open_) return;
      const auto bytes = scratch.first(kept + got);
      stripe.keep(bytes.subspan(stripe_consume(number, bytes)));
    }
    if (got == 0) return;
    budget -= std::min(budget, got);
  }
}

// A peer that ends closes all its connections at once. Frames on the first connection may say why, so this
// function reads them before the channel fails.
void Channel::on_stripe_lost(const std::string& why) {
  if (!open_ || !status().ok()) return;
  read_frames();
  if (open_ && status().ok()) pipe_failed(lost(why));
}

}  // namespace tutti::tcp
