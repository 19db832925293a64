#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/export.h>
#include <tutti/types.h>

// These functions parse and format the values of settings in variables, URLs and command lines. Any thread
// may call them.
namespace tutti {

// A `PortRange` holds the ports from `first` to `last`, both included.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

// An `AlgorithmChoice` ("all_reduce:ring") names a collective and an algorithm. The algorithm is used for all
// calls of the collective that do not name an algorithm themselves.
struct AlgorithmChoice {
  CollectiveKind kind;
  std::string algorithm;
  friend bool operator==(const AlgorithmChoice&, const AlgorithmChoice&) = default;
};

// Each parser returns nothing if the text is not valid. Blanks are not valid, except around the items of
// lists.
TUTTI_API std::optional<std::int64_t> parse_integer(std::string_view text);
// Accepts "1", "0", "true", "false", "yes", "no", "on" and "off". Case does not matter.
TUTTI_API std::optional<bool> parse_boolean(std::string_view text);
// Accepts durations such as "10s", "500ms", "2m", "50us", "1.5h" and "100ns". A bare number is in seconds.
// Negative values are refused.
TUTTI_API std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
// Accepts numbers of bytes such as "4096", "64K", "1M" and "2GiB". Units are powers of 1024.
TUTTI_API std::optional<std::uint64_t> parse_size(std::string_view text);
// Splits at commas. Drops empty items, and blanks around items.
TUTTI_API std::vector<std::string> parse_list(std::string_view text);
// Accepts a range such as "20000-21000", or one port such as "20000".
TUTTI_API std::optional<PortRange> parse_port_range(std::string_view text);
// Accepts a list such as "all_reduce:ring,broadcast:binomial", with each collective at most once. The result
// is sorted by collective.
TUTTI_API std::optional<std::vector<AlgorithmChoice>> parse_algorithm_choices(std::string_view text);

// Each formatter returns a text that its parser turns back into the same value. Durations and sizes are whole
// numbers of the largest unit that fits: "1500ms", "64K".
TUTTI_API std::string format_duration(std::chrono::nanoseconds duration);
TUTTI_API std::string format_size(std::uint64_t bytes);
TUTTI_API std::string format_list(const std::vector<std::string>& items);
TUTTI_API std::string format_port_range(PortRange range);
TUTTI_API std::string format_algorithm_choices(const std::vector<AlgorithmChoice>& choices);

}  // namespace tutti
