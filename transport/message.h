#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <tutti/status.h>

#include "core/fingerprint.h"
#include "core/reduce.h"

namespace tutti {

// A `MessageTag` names one message between two ranks. In a collective, `context` identifies the communicator,
// and `sequence` is the operation's number in that context. `index` counts the messages that the operation's
// schedule sends from this sender to this receiver. In a user message, `context` has the `user_context_bit`
// set, `sequence` is the user's tag, and `index` is 0. User messages with equal tags match in the order of
// sending.
struct MessageTag {
  std::uint32_t context = 0;
  std::uint32_t index = 0;
  std::uint64_t sequence = 0;
  friend bool operator==(const MessageTag&, const MessageTag&) = default;
};
inline constexpr std::uint32_t user_context_bit = 0x80000000u;
constexpr bool is_user(const MessageTag& tag) { return (tag.context & user_context_bit) != 0; }
// Some of the library's own messages are matched like a user's messages. Their tags have this bit, which no
// user's tag can have. A receive with `any_tag` does not take such messages.
inline constexpr std::uint64_t library_tag_bit = std::uint64_t{1} << 63;

struct MessageHeader {
  MessageTag tag;
  Fingerprint call;
  std::uint64_t bytes = 0;
};

// A `MessageSide` says whether the arriving message is the left or the right operand of a reduction.
enum class MessageSide : std::uint8_t { left, right };

// A `Sink` is where a message's payload goes. Each piece of the payload is used straight from the transport's
// memory, as it arrives. The piece is copied to `out`, or it is combined with `local` and the result is
// written to `out`.
struct Sink {
  std::byte* out = nullptr;
  const std::byte* local = nullptr;  // the other operand; may equal `out`
  const Reducer* reducer = nullptr;  // null: copy
  MessageSide side = MessageSide::right;

  bool copies() const { return reducer == nullptr; }
  // Takes the bytes at `offset` of the message. In a reduction, offset and size are multiples of the element
  // size.
  void consume(std::uint64_t offset, std::span<const std::byte> bytes) const {
    if (bytes.empty()) return;
    if (copies()) {
      std::memcpy(out + offset, bytes.data(), bytes.size());
      return;
    }
    const std::size_t count = bytes.size() / size_of(reducer->type);
    const void* left = side == MessageSide::left ? bytes.data() : local + offset;
    const void* right = side == MessageSide::left ? local + offset : bytes.data();
    (*reducer)(left, right, out + offset, count);
  }
};

class Channel;

// A `SendOp` is the operation that sends one message. The caller owns send and receive operations, so nothing
// is allocated for them. They must not move until `done` has been called. The driving thread calls `done`
// exactly once, possibly from within the call that posted the operation. After that the transport touches
// neither the operation nor the message's memory.
struct SendOp {
  MessageHeader header;
  const std::byte* data = nullptr;
  void (*done)(SendOp& op, const Status& status) = nullptr;

  // The transport uses these while the operation is posted.
  SendOp* next = nullptr;
  SendOp* previous = nullptr;
  std::uint64_t progress = 0;
  std::uint32_t id = 0;
  std::uint32_t state = 0;
};

struct RecvOp {
  MessageTag tag;
  Fingerprint call;
  int peer = -1;            // world rank to receive from; for user messages also `any_source`
  bool any_tag = false;     // user messages only
  std::uint64_t bytes = 0;  // exact length for collectives, capacity for user messages
  Sink sink;
  void (*done)(RecvOp& op, const Status& status) = nullptr;

  // When `done` is called with status ok, these are the message's source and header.
  int source = -1;
  MessageHeader received;

  // The mesh and the transport use these while the operation is posted.
  RecvOp* next = nullptr;
  RecvOp* previous = nullptr;
  Channel* channel = nullptr;
  std::uint64_t progress = 0;
  std::uint32_t id = 0;
  std::uint32_t state = 0;
};
inline constexpr int any_source = -1;

}  // namespace tutti
