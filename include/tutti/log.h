#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <tutti/status.h>

// These functions write the library's log. Its lines look like "2025-01-31T12:00:00.123456 warn [tutti 3/8
// node7:4711] text". They go to stderr, or are appended to a file. Each line is written as a whole. Any
// thread may call these functions at any time, even while the process exits. They never throw, never end the
// process, and install no signal handler. The shared library does not export them: programs configure the log
// with TUTTI_LOG_LEVEL and TUTTI_LOG_FILE.
namespace tutti::log {

enum class Level : std::uint8_t { off, error, warn, info, debug, trace };

std::string_view to_string(Level level);
std::optional<Level> parse_level(std::string_view name);

// From now on, writes the lines of `level` and of all more severe levels to `file`, or to stderr if `file` is
// empty. Before the first call, warnings and errors go to stderr. If the call fails (with `invalid_argument`,
// which names the file), nothing changes.
Status configure(Level level, const std::string& file = {});
// Adds "rank/size" to the lines of this process from now on.
void set_rank(int rank, int size);

// Returns whether lines of `level` are written. A call costs one relaxed load.
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

// Each of these functions writes one line made of the parts (text, numbers, a Status). A call costs one load
// if its level is off.
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
