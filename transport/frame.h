#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tutti/transport/message.h>

namespace tutti {

enum class FrameType : std::uint8_t {
  eager = 1,    // a whole small message: header and payload
  request = 2,  // a large message is waiting at the sender (request to send)
  clear = 3,    // its receive is there (clear to send)
  data = 4,     // a fragment of it
  credit = 5,   // eager bytes that were claimed and may be sent anew
  cancel = 6,   // the sender gave a message up
  refuse = 7,   // the receiver gave a message up
  abort = 8,    // a context has failed; the payload says why
  goodbye = 9,  // nothing will follow
};

// Every frame starts with this, in little-endian order, 64 bytes on the wire; `payload` bytes follow.
struct FrameHeader {
  FrameType type = FrameType::goodbye;
  std::uint32_t payload = 0;
  std::uint32_t sender_id = 0;    // the sender's name for a large message
  std::uint32_t receiver_id = 0;  // the receiver's name for it
  std::uint64_t offset = 0;       // data: of the fragment; credit: bytes returned
  MessageHeader message;          // eager, request; abort: tag.context
};

inline constexpr std::size_t frame_header_bytes = 64;
using EncodedFrameHeader = std::array<std::byte, frame_header_bytes>;

void encode(const FrameHeader& header, std::span<std::byte, frame_header_bytes> to);
// Checks magic, type and every enumeration; lengths are judged by the channel. False: not a frame.
bool decode(std::span<const std::byte, frame_header_bytes> from, FrameHeader& header);

}  // namespace tutti
