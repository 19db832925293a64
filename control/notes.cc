#include "control/notes.h"

#include <limits>

#include "transport/message.h"

namespace tutti {
namespace {

constexpr std::size_t longest_text = 4096;
constexpr std::uint64_t no_place = std::numeric_limits<std::uint64_t>::max();

void put(NoteWriter& writer, const CallNote& note) {
  writer.put(note.context)
      .put(note.sequence)
      .put(static_cast<std::uint8_t>(note.call.kind))
      .put(static_cast<std::uint8_t>(note.call.type))
      .put(static_cast<std::uint8_t>(note.call.op))
      .put(note.call.algorithm)
      .put(static_cast<std::uint8_t>(note.call.part_of))
      .put(static_cast<std::uint8_t>(note.call.on_device ? 1 : 0))
      .put(static_cast<std::uint32_t>(note.call.root))
      .put(note.call.count);
}

// Reads an enumeration of one byte whose last value is `last`.
template <class E>
bool get(NoteReader& reader, E last, E& value) {
  const auto raw = reader.get<std::uint8_t>();
  value = static_cast<E>(raw);
  return raw <= static_cast<std::uint8_t>(last);
}

bool get(NoteReader& reader, CallNote& note) {
  note.context = reader.get<std::uint32_t>();
  note.sequence = reader.get<std::uint64_t>();
  bool good = get(reader, CollectiveKind::recv, note.call.kind);
  good &= get(reader, DataType::float8_e5m2, note.call.type);
  good &= get(reader, ReduceOp::Kind::user, note.call.op);
  note.call.algorithm = reader.get<std::uint8_t>();
  Composite part_of{};
  good &= get(reader, Composite::offload, part_of);
  note.call.part_of = part_of;
  const auto on_device = reader.get<std::uint8_t>();
  note.call.on_device = on_device != 0;
  good &= on_device <= 1;
  const auto root = static_cast<std::int32_t>(reader.get<std::uint32_t>());
  note.call.root = root;
  good &= note.call.root == root;
  note.call.count = reader.get<std::uint64_t>();
  return good && reader.ok();
}

}  // namespace

std::string encode(const FailureNote& note) {
  return NoteWriter()
      .put(note.context)
      .put(static_cast<std::uint8_t>(note.why.code()))
      .put(static_cast<std::int32_t>(note.why.peer()))
      .text(std::string_view(note.why.message()).substr(0, longest_text))
      .take();
}

std::optional<FailureNote> decode_failure(std::string_view body) {
  NoteReader reader(body);
  FailureNote note;
  note.context = reader.get<std::uint32_t>();
  const auto code = reader.get<std::uint8_t>();
  const auto peer = reader.get<std::int32_t>();
  if (!reader.ok() || code == 0 || code > static_cast<std::uint8_t>(Code::internal) || peer < -1)
    return std::nullopt;
  note.why = Status(static_cast<Code>(code), std::string(reader.rest().substr(0, longest_text)), peer);
  return note;
}

std::uint32_t context_of_note(std::string_view body) { return NoteReader(body).get<std::uint32_t>(); }

std::string encode(const CallNote& note) {
  NoteWriter writer;
  put(writer, note);
  return writer.take();
}

std::optional<CallNote> decode_call(std::string_view body) {
  NoteReader reader(body);
  CallNote note;
  return get(reader, note) ? std::optional(note) : std::nullopt;
}

std::string encode(const ExpiredNote& note) {
  NoteWriter writer;
  put(writer, note);
  return writer.text(std::string_view(note.text).substr(0, longest_text)).take();
}

std::optional<ExpiredNote> decode_expired(std::string_view body) {
  NoteReader reader(body);
  ExpiredNote note;
  if (!get(reader, note)) return std::nullopt;
  note.text = reader.rest().substr(0, longest_text);
  return note;
}

std::string encode(const HereNote& note) {
  return NoteWriter().put(note.context).put(note.sequence).put(note.next).take();
}

std::optional<HereNote> decode_here(std::string_view body) {
  NoteReader reader(body);
  HereNote note;
  note.context = reader.get<std::uint32_t>();
  note.sequence = reader.get<std::uint64_t>();
  note.next = reader.get<std::uint64_t>();
  return reader.ok() ? std::optional(note) : std::nullopt;
}

namespace {

void put(NoteWriter& writer, const std::vector<bool>& set) {
  for (std::size_t i = 0; i < set.size(); i += 8) {
    std::uint8_t byte = 0;
    for (std::size_t bit = 0; bit < 8 && i + bit < set.size(); ++bit)
      byte |= static_cast<std::uint8_t>(set[i + bit] ? 1u << bit : 0u);
    writer.put(byte);
  }
}

// Reads `size` bits. The caller has checked that all of their bytes are there.
std::vector<bool> get(NoteReader& reader, std::uint32_t size) {
  std::vector<bool> set(size);
  std::uint8_t byte = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (i % 8 == 0) byte = reader.get<std::uint8_t>();
    set[i] = (byte >> i % 8 & 1) != 0;
  }
  return set;
}

}  // namespace

std::string encode(const ShrinkNote& note) {
  NoteWriter writer;
  writer.put(note.context)
      .put(static_cast<std::uint8_t>(note.kind))
      .put(note.attempt)
      .put(note.round)
      .put(note.generation)
      .put(note.number)
      .put(note.needed)
      .put(note.completed)
      .put(note.place.value_or(no_place))
      .put(static_cast<std::uint32_t>(note.members.size()))
      .put(static_cast<std::uint32_t>(note.spared.size()));
  put(writer, note.members);
  put(writer, note.spared);
  return writer.take();
}

std::optional<ShrinkNote> decode_shrink(std::string_view body) {
  NoteReader reader(body);
  ShrinkNote note;
  note.context = reader.get<std::uint32_t>();
  const auto kind = reader.get<std::uint8_t>();
  note.kind = static_cast<ShrinkNote::Kind>(kind);
  note.attempt = reader.get<std::uint32_t>();
  note.round = reader.get<std::uint32_t>();
  note.generation = reader.get<std::uint32_t>();
  note.number = reader.get<std::uint32_t>();
  note.needed = reader.get<std::uint32_t>();
  note.completed = reader.get<std::uint64_t>();
  if (const auto place = reader.get<std::uint64_t>(); place != no_place) note.place = place;
  const auto members = reader.get<std::uint32_t>(), spared = reader.get<std::uint32_t>();
  const std::size_t bytes = (std::size_t{members} + 7) / 8 + (std::size_t{spared} + 7) / 8;
  if (!reader.ok() || kind < static_cast<std::uint8_t>(ShrinkNote::Kind::join) ||
      kind > static_cast<std::uint8_t>(ShrinkNote::Kind::learned) || note.number >= user_context_bit ||
      reader.rest().size() != bytes) {
    return std::nullopt;
  }
  note.members = get(reader, members);
  note.spared = get(reader, spared);
  return note;
}

}  // namespace tutti
