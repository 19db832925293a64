#include <algorithm>

#include "transport/stream/receiver.h"

// This file receives payloads over side connections, which the headers on the first connection announce.
// Several payloads of one message can be in flight, so the message is complete when all of its bytes have
// arrived, in any order.
namespace tutti {

const char* StreamReceiver::announce_on_side(Incoming& message, const FrameHeader& header) {
  left_ = 0;
  if (sides_.size() < header.side) sides_.resize(header.side);
  std::deque<SidePayload>& queue = sides_[header.side - 1u];
  if (header.payload < StreamLimits::min_side_payload || queue.size() >= StreamLimits::max_side_queue) {
    return "data that does not belong on a side connection";
  }
  ++message.on_sides;
  queue.push_back({&message, header.offset, header.payload});
  return nullptr;
}

std::size_t StreamReceiver::side_left(std::uint8_t side) const {
  return side > sides_.size() || sides_[side - 1u].empty() ? 0 : sides_[side - 1u].front().left;
}

bool StreamReceiver::expects_sides() const {
  return std::any_of(sides_.begin(), sides_.end(), [](const auto& queue) { return !queue.empty(); });
}

std::span<std::byte> StreamReceiver::side_direct(std::uint8_t side) const {
  if (side_left(side) == 0) return {};
  const SidePayload& payload = sides_[side - 1u].front();
  return payload.message == nullptr ? std::span<std::byte>()
                                    : place(payload.message, payload.at, payload.left);
}

std::size_t StreamReceiver::side_consume(std::uint8_t side, std::span<const std::byte> bytes) {
  if (side_left(side) == 0) return 0;
  const SidePayload& payload = sides_[side - 1u].front();
  bytes = bytes.first(std::min(bytes.size(), payload.left));
  const std::size_t taken =
      payload.message == nullptr ? bytes.size() : store(*payload.message, payload.at, bytes);
  if (taken > 0) side_filled(side, taken);
  return taken;
}

void StreamReceiver::side_filled(std::uint8_t side, std::size_t bytes) {
  std::deque<SidePayload>& queue = sides_[side - 1u];
  SidePayload& payload = queue.front();
  Incoming* const message = payload.message;
  payload.at += bytes;
  payload.left -= bytes;
  const bool over = payload.left == 0;
  if (over) queue.pop_front();
  if (message == nullptr) return;
  counters_.bytes_received += bytes;
  message->received += bytes;
  if (over) --message->on_sides;
  if (message->received == message->header.bytes) complete(*message);
}

// The rest of the message is discarded as it arrives.
void StreamReceiver::forget_on_sides(const Incoming& message) {
  for (auto& queue : sides_) {
    for (SidePayload& payload : queue) {
      if (payload.message == &message) payload.message = nullptr;
    }
  }
}

}  // namespace tutti
