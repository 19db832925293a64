#include "transport/stream/frame.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace tutti {
namespace {

// These are the offsets of the fields on the wire:
//    0 magic     4 type       5 code   6 stripe     7 acknowledge          8 payload
//   12 id       16 offset    24 context             28 index              32 sequence
//   40 kind     41 type      42 op    43 algorithm  44 root (three bytes)  47 part_of
//   48 count    56 bytes
constexpr std::uint32_t magic = 0x31545554;  // "TUT1"

template <class T>
T to_wire(T value) {
  if constexpr (std::endian::native == std::endian::big && sizeof(T) > 1) {
    T swapped{};
    auto* to = reinterpret_cast<unsigned char*>(&swapped);
    const auto* from = reinterpret_cast<const unsigned char*>(&value);
    for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = from[sizeof(T) - 1 - i];
    return swapped;
  } else {
    return value;
  }
}

template <class T>
void put(std::byte* to, T value) {
  static_assert(std::is_integral_v<T>);
  const T wire = to_wire(value);
  std::memcpy(to, &wire, sizeof(T));
}

template <class T>
T get(const std::byte* from) {
  static_assert(std::is_integral_v<T>);
  T wire;
  std::memcpy(&wire, from, sizeof(T));
  return to_wire(wire);
}

// Reads an enumeration of one byte whose last value is `last`.
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
  put(p + 40, static_cast<std::uint8_t>(message.call.kind));
  put(p + 41, static_cast<std::uint8_t>(message.call.type));
  put(p + 42, static_cast<std::uint8_t>(message.call.op));
  put(p + 43, message.call.algorithm);
  put(p + 44, std::int32_t{message.call.root});  // its fourth byte is overwritten
  put(p + 47, static_cast<std::uint8_t>(message.call.part_of));
  put(p + 48, message.call.count);
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
  return header;
}

Grant to_grant(const FrameHeader& header) {
  const MessageHeader& message = header.message;
  return {header.offset, message.bytes, {message.tag.sequence, message.call.count}};
}

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
  good &= get_enum(p + 40, CollectiveKind::recv, message.call.kind);
  good &= get_enum(p + 41, DataType::float8_e5m2, message.call.type);
  good &= get_enum(p + 42, ReduceOp::Kind::user, message.call.op);
  message.call.algorithm = get<std::uint8_t>(p + 43);
  message.call.root = get<std::int32_t>(p + 44) << 8 >> 8;
  Composite part_of{};
  good &= get_enum(p + 47, Composite::allocate, part_of);
  message.call.part_of = part_of;
  message.call.count = get<std::uint64_t>(p + 48);
  message.bytes = get<std::uint64_t>(p + 56);
  return good;
}

}  // namespace tutti
