#include "transport/stream/frame.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace tutti {
namespace {

// These are the offsets of the fields on the wire:
//    0 magic     4 type       5 code   6 stripe     7 acknowledge          8 payload
//   12 id       16 offset    24 context             28 index              32 sequence
//   40 call     56 bytes (of the message)
constexpr std::uint32_t magic = 0x31545554;  // "TUT1"

// Numbers and fingerprints are copied to the wire as they are in memory. The wire is little-endian, so memory
// must be, too.
static_assert(std::endian::native == std::endian::little);

template <class T>
void put(std::byte* to, const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  std::memcpy(to, &value, sizeof(T));
}

template <class T>
T get(const std::byte* from) {
  static_assert(std::has_unique_object_representations_v<T>);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// Reads a value of an enumeration from one byte. Returns false if the value is greater than `last`, the
// enumeration's last value.
template <class E>
bool get_enum(const std::byte* from, E last, E& value) {
  const auto raw = get<std::uint8_t>(from);
  value = static_cast<E>(raw);
  return raw <= static_cast<std::uint8_t>(last);
}

}  // namespace

void encode(const FrameHeader& header, std::span<std::byte, frame_header_bytes> to) {
  std::byte* p = to.data();
  const MessageHeader& message = header.message;
  put(p, magic);
  put(p + 4, static_cast<std::uint8_t>(header.type));
  put(p + 5, static_cast<std::uint8_t>(header.code));
  put(p + 6, header.stripe);
  put(p + 7, static_cast<std::uint8_t>(header.acknowledge));
  put(p + 8, header.payload);
  put(p + 12, header.id);
  put(p + 16, header.offset);
  put(p + 24, message.tag.context);
  put(p + 28, message.tag.index);
  put(p + 32, message.tag.sequence);
  put(p + 40, message.call);
  put(p + 56, message.bytes);
}

FrameHeader to_header(std::uint32_t id, const Grant& grant) {
  FrameHeader header;
  header.type = FrameType::grant;
  header.id = id;
  header.offset = grant.offset;
  header.message.bytes = grant.bytes;
  header.message.tag.sequence = grant.place.address;
  header.message.call.count = grant.place.key;
  header.message.tag.context = static_cast<std::uint32_t>(grant.place.more_keys);
  header.message.tag.index = static_cast<std::uint32_t>(grant.place.more_keys >> 32);
  return header;
}

Grant to_grant(const FrameHeader& header) {
  const MessageHeader& message = header.message;
  const std::uint64_t more = message.tag.context | std::uint64_t{message.tag.index} << 32;
  return {header.offset, message.bytes, {message.tag.sequence, message.call.count, more}};
}

FrameType type_of(const EncodedFrameHeader& header) {
  return static_cast<FrameType>(get<std::uint8_t>(header.data() + 4));
}

std::uint32_t id_of(const EncodedFrameHeader& header) { return get<std::uint32_t>(header.data() + 12); }

void set_stripe(EncodedFrameHeader& header, std::uint8_t stripe) { put(header.data() + 6, stripe); }

void set_acknowledge(EncodedFrameHeader& header) { put(header.data() + 7, std::uint8_t{1}); }

bool has_acknowledge(const EncodedFrameHeader& header) { return get<std::uint8_t>(header.data() + 7) != 0; }

bool decode(std::span<const std::byte, frame_header_bytes> from, FrameHeader& header) {
  const std::byte* p = from.data();
  MessageHeader& message = header.message;
  bool good = get<std::uint32_t>(p) == magic && get<std::uint8_t>(p + 7) <= 1;
  good &= get_enum(p + 4, FrameType::written, header.type) && header.type >= FrameType::eager;
  good &= get_enum(p + 5, Code::internal, header.code);
  header.stripe = get<std::uint8_t>(p + 6);
  good &= header.stripe == 0 || (header.type == FrameType::data && header.stripe <= max_stripes);
  header.acknowledge = get<std::uint8_t>(p + 7) != 0;
  header.payload = get<std::uint32_t>(p + 8);
  header.id = get<std::uint32_t>(p + 12);
  header.offset = get<std::uint64_t>(p + 16);
  message.tag.context = get<std::uint32_t>(p + 24);
  message.tag.index = get<std::uint32_t>(p + 28);
  message.tag.sequence = get<std::uint64_t>(p + 32);
  message.call = get<Fingerprint>(p + 40);
  good &= message.call.kind <= CollectiveKind::recv;
  good &= message.call.type <= DataType::float8_e5m2;
  good &= message.call.op <= ReduceOp::Kind::user;
  good &= message.call.part_of <= Composite::offload;
  message.bytes = get<std::uint64_t>(p + 56);
  return good;
}

}  // namespace tutti
