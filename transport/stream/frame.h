#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/message.h"

// A `FrameHeader` starts every frame on a stream. This file also has its encoding.
namespace tutti {

// clang-format off
enum class FrameType : std::uint8_t {
  eager = 1,    // a whole small message: header and payload
  request = 2,  // a large message is waiting at the sender (request to send)
  clear = 3,    // the matching receive exists (clear to send)
  data = 4,     // a fragment of it, in order
  credit = 5,   // eager messages were claimed or discarded: `offset` units of credit may be used again
  cancel = 6,   // the sender does not send the rest of a message
  refuse = 7,   // the receiver wants no more of a message; answered by `cancel` or crossed by the last fragment
  abort = 8,    // a context has failed; the payload says why
  goodbye = 9,  // nothing will follow
};
// clang-format on

// It is 64 bytes on the wire, in little-endian order; `payload` bytes follow.
struct FrameHeader {
  FrameType type = FrameType::goodbye;
  Code code = Code::ok;  // cancel, refuse, abort: why
  // data: zero if the payload follows; else it travels by the side connection of that number, where payloads
  // travel in the order of these headers.
  std::uint8_t side = 0;
  // Later frames may wait in the sender's kernel until this one is acknowledged, so the receiver acknowledges
  // it as soon as it has read it.
  bool acknowledge = false;
  std::uint32_t payload = 0;  // eager, data, abort
  // The sender's name for a large message, used by both sides until its last fragment or `cancel`: its place
  // in the sender's table in the low half, a generation in the high one. abort: one more than the rank to
  // blame; 0: no rank.
  std::uint32_t id = 0;
  std::uint64_t offset = 0;  // data: of the fragment; credit: units returned
  MessageHeader message;     // eager, request; abort: tag.context
};

// The number of side connections, which a channel has besides its first one.
inline constexpr std::uint8_t max_sides = 15;

inline constexpr std::size_t frame_header_bytes = 64;
using EncodedFrameHeader = std::array<std::byte, frame_header_bytes>;

void encode(const FrameHeader& header, std::span<std::byte, frame_header_bytes> to);
// Puts an encoded data frame's payload onto a side connection.
void set_side(EncodedFrameHeader& header, std::uint8_t side);
// See FrameHeader.
void set_acknowledge(EncodedFrameHeader& header);
bool has_acknowledge(const EncodedFrameHeader& header);
// Checks magic, type, reserved bytes and every enumeration; the channel checks lengths and ids. False if this
// is not a frame.
bool decode(std::span<const std::byte, frame_header_bytes> from, FrameHeader& header);

// An `OutgoingFrame` is a frame that is being sent: an encoded header and the payload that follows it.
// Between two writes the payload may be moved elsewhere (its operation was cancelled), so the pipe must look
// at `payload` again each time.
struct OutgoingFrame {
  EncodedFrameHeader header;
  std::span<const std::byte> payload;
  SendOp* op = nullptr;     // whose payload this is; null for control frames and when the operation is gone
  std::size_t written = 0;  // for the pipe: header and payload bytes that have left
  // A fragment of a large message, which may be put onto a side connection (`set_side`), if the pipe has any.
  bool fragment = false;
  std::uint8_t side = 0;
  std::size_t side_written = 0;  // for the pipe: payload bytes that have left there
};

}  // namespace tutti
