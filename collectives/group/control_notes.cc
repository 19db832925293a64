#include "collectives/group/control_notes.h"

namespace tutti {
namespace {

constexpr std::size_t longest_text = 4096;

void put(NoteWriter& writer, const CallNote& note) {
  writer.put(note.context)
      .put(note.sequence)
      .put(static_cast<std::uint8_t>(note.call.kind))
      .put(static_cast<std::uint8_t>(note.call.type))
      .put(static_cast<std::uint8_t>(note.call.op))
      .put(note.call.algorithm)
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
  note.call.root = static_cast<std::int32_t>(reader.get<std::uint32_t>());
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

}  // namespace tutti
