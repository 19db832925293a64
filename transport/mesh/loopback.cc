#include "transport/mesh/loopback.h"

#include <cstring>

namespace tutti {

void LoopbackChannel::kick() {
  while (OutgoingFrame* frame = closed_ ? nullptr : next_frame()) {
    FrameHeader header;
    decode(frame->header, header);
    if (!begin_frame(header).ok() || closed_) return;
    // A callback of `begin_frame` may have cancelled the send, and cancelling moves the payload. So
    // `frame->payload` must be read after that call.
    const std::span<const std::byte> payload = frame->payload;
    if (const std::span<std::byte> place = direct(); !place.empty()) {
      std::memcpy(place.data(), payload.data(), payload.size());
      direct_filled(payload.size());
    } else {
      consume(payload);
    }
    if (!closed_) frame_written(*frame);
  }
}

}  // namespace tutti
