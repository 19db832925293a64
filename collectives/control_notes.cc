#include <tutti/collectives/control_notes.h>

namespace tutti {
namespace {

constexpr std::size_t longest_text = 4096;

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

}  // namespace tutti
