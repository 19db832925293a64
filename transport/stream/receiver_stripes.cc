#include <algorithm>

#include "transport/stream/receiver.h"

// This file receives payloads on stripes (connections beside the first one). Headers on the first
// connection announce these payloads. Several payloads of one message can be under way at once, and
// may arrive in any order. So a message is complete when all of its bytes have arrived.
namespace tutti {

const char* StreamReceiver::announce_on_stripe(Incoming& message, const FrameHeader& header) {
  left_ = 0;
  if (!accepts_stripes_) return "data on a stripe, but this transport has no stripes";
  if (stripes_.size() < header.stripe) stripes_.resize(header.stripe);
  std::deque<StripePayload>& queue = stripes_[header.stripe - 1u];
  if (header.payload < StreamLimits::min_stripe_payload || queue.size() >= StreamLimits::max_stripe_queue) {
    return "data that does not belong on a stripe";
  }
  ++message.on_stripes;
  queue.push_back({&message, header.offset, header.payload});
  return nullptr;
}

std::size_t StreamReceiver::stripe_left(std::uint8_t stripe) const {
  return stripe > stripes_.size() || stripes_[stripe - 1u].empty() ? 0 : stripes_[stripe - 1u].front().left;
}

bool StreamReceiver::expects_stripes() const {
  return std::any_of(stripes_.begin(), stripes_.end(), [](const auto& queue) { return !queue.empty(); });
}

std::span<std::byte> StreamReceiver::stripe_direct(std::uint8_t stripe) const {
  if (stripe_left(stripe) == 0) return {};
  const StripePayload& payload = stripes_[stripe - 1u].front();
  return payload.message == nullptr ? std::span<std::byte>()
                                    : place(payload.message, payload.at, payload.left);
}

std::size_t StreamReceiver::stripe_consume(std::uint8_t stripe, std::span<const std::byte> bytes) {
  if (stripe_left(stripe) == 0) return 0;
  const StripePayload& payload = stripes_[stripe - 1u].front();
  bytes = bytes.first(std::min(bytes.size(), payload.left));
  const std::size_t taken =
      payload.message == nullptr ? bytes.size() : store(*payload.message, payload.at, bytes);
  if (taken > 0) stripe_filled(stripe, taken);
  return taken;
}

void StreamReceiver::stripe_filled(std::uint8_t stripe, std::size_t bytes) {
  std::deque<StripePayload>& queue = stripes_[stripe - 1u];
  StripePayload& payload = queue.front();
  Incoming* const message = payload.message;
  payload.at += bytes;
  payload.left -= bytes;
  const bool over = payload.left == 0;
  if (over) queue.pop_front();
  if (message == nullptr) return;
  counters_.bytes_received += bytes;
  message->received += bytes;
  if (over) --message->on_stripes;
  if (message->received == message->header.bytes) complete(*message);
}

// Makes the receiver discard those payloads of the message that are still to arrive on stripes.
void StreamReceiver::forget_on_stripes(const Incoming& message) {
  for (auto& queue : stripes_) {
    for (StripePayload& payload : queue) {
      if (payload.message == &message) payload.message = nullptr;
    }
  }
}

}  // namespace tutti
