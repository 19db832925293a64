#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <tutti/status.h>

// Log lines for the users of the program: "2025-01-31T12:00:00.123456 warn [tutti 3/8 node7:4711] text". They
// go to stderr, or are appended to a file, whole lines at a time. Any thread may call these functions at any
// time, even while the process exits; nothing here throws, ends the process or installs a handler.
namespace tutti::log {

enum class Level : std::uint8_t { off, error, warn, info, debug, trace };

std::string_view to_string(Level level);
std::optional<Level> parse_level(std::string_view name);

// From now on lines up to `level` go to `file`, or to stderr if that is empty. Before the first call:
// warnings and errors, to stderr. On failure (invalid_argument, naming the file) nothing changes.
Status configure(Level level, const std::string& file = {});
// From now on the lines of this process carry "rank/size".
void set_rank(int rank, int size);

// One relaxed load.
bool enabled(Level level);
void write(Level level, std::string_view text);

namespace detail {

template <class Part>
void append(std::string& text, const Part& part) {
  if constexpr (std::is_convertible_v<const Part&, std::string_view>) {
    text += std::string_view(part);
  } else if constexpr (std::is_same_v<Part, bool>) {
    text += part ? "true" : "false";
  } else if constexpr (std::is_same_v<Part, char>) {
    text += part;
  } else if constexpr (std::is_same_v<Part, Status>) {
    text += part.to_string();
  } else {
    text += std::to_string(part);
  }
}

template <class... Parts>
void write_parts(Level level, const Parts&... parts) {
  if (!enabled(level)) return;
  std::string text;
  (append(text, parts), ...);
  write(level, text);
}

}  // namespace detail

// Logs the parts (text, numbers, a Status) joined together. Costs one load if the level is off.
template <class... Parts>
void error(const Parts&... parts) {
  detail::write_parts(Level::error, parts...);
}
template <class... Parts>
void warn(const Parts&... parts) {
  detail::write_parts(Level::warn, parts...);
}
template <class... Parts>
void info(const Parts&... parts) {
  detail::write_parts(Level::info, parts...);
}
template <class... Parts>
void debug(const Parts&... parts) {
  detail::write_parts(Level::debug, parts...);
}
template <class... Parts>
void trace(const Parts&... parts) {
  detail::write_parts(Level::trace, parts...);
}

}  // namespace tutti::log
