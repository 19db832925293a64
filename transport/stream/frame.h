#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/message.h"
#include "transport/registered_memory.h"

// A `FrameHeader` starts every frame on a stream. The functions here encode and decode it.
namespace tutti {

// clang-format off
enum class FrameType : std::uint8_t {
  eager = 1,    // a whole small message: header and payload
  request = 2,  // a large message is waiting at the sender (request to send)
  clear = 3,    // the receive for a large message is posted (clear to send)
  data = 4,     // a fragment of a large message, in order
  credit = 5,   // eager messages were claimed or discarded: `offset` units of credit may be used again
  cancel = 6,   // the sender's last frame for a message that it does not send completely
  refuse = 7,   // the receiver wants no more of a message; the sender answers with `cancel` unless the last
                // fragment has left
  abort = 8,    // a context has failed; the payload says why
  goodbye = 9,  // no frame follows
  grant = 10,   // in place of `clear`: the sender may write a part of the message into this rank's memory
  written = 11, // the sender has written a part of the message into memory that was granted
};
// clang-format on

// The header has 64 bytes on the wire, in little-endian order. `payload` bytes follow it. Some members have a
// meaning only in the types of frames that their comments name.
struct FrameHeader {
  FrameType type = FrameType::goodbye;
  Code code = Code::ok;  // cancel, refuse, abort: why
  // In `data`, this is zero if the payload follows the header. Otherwise the payload travels over the stripe
  // with this number. Payloads on a stripe arrive in the order of their headers.
  std::uint8_t stripe = 0;
  // If this is true, the receiver makes its kernel acknowledge the frame as soon as the frame has
  // been read. Until the acknowledgement, the sender's kernel may hold back later frames.
  bool acknowledge = false;
  std::uint32_t payload = 0;  // eager, data, abort
  // This identifies a large message on both sides until its last fragment or `cancel`. The low half is the
  // message's place in the sender's table, and the high half counts how often that place was used. In
  // `abort`, this is one more than the rank to blame, or 0 if there is none.
  std::uint32_t id = 0;
  std::uint64_t offset = 0;  // data, grant, written: offset in the message; credit: units returned
  MessageHeader message;     // eager, request: complete; abort: tag.context; written: bytes; grant: see below
};

// A `RemotePlace` names memory of a rank to a peer that may write there.
struct RemotePlace {
  std::uint64_t address = 0;
  // These have a meaning only to the transport. Most transports need the first one only.
  std::uint64_t key = 0;
  std::uint64_t more_keys = 0;
};

// A `Grant` permits the sender to write a part of a message into the receiver's memory.
struct Grant {
  std::uint64_t offset = 0;  // in the message
  std::uint64_t bytes = 0;
  RemotePlace place;
};
// These two functions convert a grant to and from the header of its frame. In the header, `message.bytes` is
// the length of the granted part, `message.tag.sequence` the address of its place, and `message.call.count`
// the key of its place. `message.tag.context` and `message.tag.index` are the two halves of `more_keys`.
FrameHeader to_header(std::uint32_t id, const Grant& grant);
Grant to_grant(const FrameHeader& header);

// This is the largest number of stripes in each direction. Stripes are all connections of a channel
// except its first one.
inline constexpr std::uint8_t max_stripes = 15;

inline constexpr std::size_t frame_header_bytes = 64;
using EncodedFrameHeader = std::array<std::byte, frame_header_bytes>;

void encode(const FrameHeader& header, std::span<std::byte, frame_header_bytes> to);
// These functions return the type and the id of a frame from its encoded header.
FrameType type_of(const EncodedFrameHeader& header);
std::uint32_t id_of(const EncodedFrameHeader& header);
// Sets `FrameHeader::stripe` in an encoded data frame.
void set_stripe(EncodedFrameHeader& header, std::uint8_t stripe);
// These functions set and read `FrameHeader::acknowledge` in an encoded header.
void set_acknowledge(EncodedFrameHeader& header);
bool has_acknowledge(const EncodedFrameHeader& header);
// Decodes a header. Checks the magic number, `stripe`, `acknowledge` and every enumeration; the channel
// checks lengths and ids. Returns false if the bytes are not a header.
bool decode(std::span<const std::byte, frame_header_bytes> from, FrameHeader& header);

// A `PayloadRoute` says how the pipe sends a payload. With `behind_header`, the payload follows the header.
// With `any_stripe`, a pipe that has stripes may instead send the payload over one of them (`set_stripe`).
// With `remote_write`, the pipe writes the payload into the peer's memory, and the header follows alone. (If
// the write itself can tell the peer the header's id, the header need not be sent.)
enum class PayloadRoute : std::uint8_t { behind_header, any_stripe, remote_write };

// An `OutgoingFrame` is a frame to be written: an encoded header, and its payload. Between two writes the
// payload may move (when its operation is cancelled), so the pipe must read `payload` again each time.
struct OutgoingFrame {
  EncodedFrameHeader header;
  std::span<const std::byte> payload;
  SendOp* op = nullptr;     // owner of the payload; null for control frames and once the operation has ended
  std::size_t written = 0;  // set by the pipe: header and payload bytes that have left
  PayloadRoute route = PayloadRoute::behind_header;
  std::uint8_t stripe = 0;
  std::size_t stripe_written = 0;  // set by the pipe: payload bytes that have left over the stripe
  RemotePlace place;               // only for a remote write: where the payload goes
  // Only for a remote write: the registration of the operation's memory, if it was registered for this
  // operation.
  const RegisteredMemory* registered = nullptr;
};

}  // namespace tutti
