#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <tutti/config_values.h>

namespace tutti {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Both tables have the largest unit first, since the formatters use the first unit that fits.
constexpr std::array<Unit, 6> duration_units = {{{"h", 3'600'000'000'000},
                                                 {"m", 60'000'000'000},
                                                 {"s", 1'000'000'000},
                                                 {"ms", 1'000'000},
                                                 {"us", 1'000},
                                                 {"ns", 1}}};
constexpr std::array<Unit, 4> size_units = {
    {{"T", std::uint64_t{1} << 40}, {"G", std::uint64_t{1} << 30}, {"M", 1 << 20}, {"K", 1 << 10}}};

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Returns `digits` (such as the "12.5" of "12.5ms") times `factor`, rounded to the nearest integer. The
// fraction may have at most nine digits.
std::optional<std::uint64_t> scaled_number(std::string_view digits, std::uint64_t factor) {
  const std::size_t point = digits.find('.');
  const std::string_view whole_text = digits.substr(0, point);
  const std::string_view fraction = point == digits.npos ? "" : digits.substr(point + 1);
  if (point != digits.npos && (fraction.empty() || fraction.size() > 9)) return std::nullopt;
  const auto number = [](std::string_view text) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  };
  const auto whole = number(whole_text);
  const auto part = fraction.empty() ? std::optional<std::uint64_t>(0) : number(fraction);
  if (!whole || !part || *whole > std::numeric_limits<std::int64_t>::max() / factor) return std::nullopt;
  long double divisor = 1;
  for (std::size_t i = 0; i < fraction.size(); ++i) divisor *= 10;
  const auto rest = static_cast<std::uint64_t>(static_cast<long double>(*part) / divisor * factor + 0.5L);
  const std::uint64_t total = *whole * factor + rest;
  return total > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ? std::nullopt
                                                                                      : std::optional(total);
}

struct NumberAndUnit {
  std::string_view number;
  std::string_view unit;
};

NumberAndUnit split_unit(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  return end == text.npos ? NumberAndUnit{text, {}} : NumberAndUnit{text.substr(0, end), text.substr(end)};
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<bool> parse_boolean(std::string_view text) {
  std::string letters(text);
  std::transform(letters.begin(), letters.end(), letters.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string_view yes : {"1", "true", "yes", "on"}) {
    if (letters == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "no", "off"}) {
    if (letters == no) return false;
  }
  return std::nullopt;
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const NumberAndUnit parts = split_unit(text);
  for (const Unit& unit : duration_units) {
    if (unit.name != (parts.unit.empty() ? "s" : parts.unit)) continue;
    const auto value = scaled_number(parts.number, unit.factor);
    if (!value) return std::nullopt;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(*value));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const NumberAndUnit parts = split_unit(text);
  std::string letters(parts.unit);
  std::transform(letters.begin(), letters.end(), letters.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (letters.size() > 1 && letters.ends_with("IB")) {
    letters.resize(letters.size() - 2);
  } else if (letters.ends_with("B")) {
    letters.pop_back();
  }
  if (letters.empty()) return scaled_number(parts.number, 1);
  for (const Unit& candidate : size_units) {
    if (candidate.name == letters) return scaled_number(parts.number, candidate.factor);
  }
  return std::nullopt;
}

std::vector<std::string> parse_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = trim(text.substr(0, comma));
    if (!item.empty()) items.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

std::optional<PortRange> parse_port_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_integer(text.substr(0, dash));
  const auto last = dash == text.npos ? first : parse_integer(text.substr(dash + 1));
  if (!first || !last || *first < 1 || *last > 65535 || *first > *last) return std::nullopt;
  return PortRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
}

std::optional<std::vector<AlgorithmChoice>> parse_algorithm_choices(std::string_view text) {
  std::vector<AlgorithmChoice> choices;
  for (const std::string& item : parse_list(text)) {
    const std::size_t colon = item.find(':');
    if (colon == item.npos || colon + 1 == item.size()) return std::nullopt;
    const auto kind = parse_collective_kind(trim(std::string_view(item).substr(0, colon)));
    if (!kind) return std::nullopt;
    const bool twice = std::any_of(choices.begin(), choices.end(),
                                   [&](const AlgorithmChoice& choice) { return choice.kind == *kind; });
    if (twice) return std::nullopt;
    choices.push_back({*kind, std::string(trim(std::string_view(item).substr(colon + 1)))});
  }
  std::sort(choices.begin(), choices.end(),
            [](const AlgorithmChoice& a, const AlgorithmChoice& b) { return a.kind < b.kind; });
  return choices;
}

std::string format_duration(std::chrono::nanoseconds duration) {
  const auto count = static_cast<std::uint64_t>(duration.count());
  if (count == 0) return "0s";
  for (const Unit& unit : duration_units) {
    if (count % unit.factor == 0) return std::to_string(count / unit.factor) + std::string(unit.name);
  }
  return std::to_string(count) + "ns";
}

std::string format_size(std::uint64_t bytes) {
  for (const Unit& unit : size_units) {
    if (bytes != 0 && bytes % unit.factor == 0) {
      return std::to_string(bytes / unit.factor) + std::string(unit.name);
    }
  }
  return std::to_string(bytes);
}

std::string format_list(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ",") + item;
  return text;
}

std::string format_port_range(PortRange range) {
  return std::to_string(range.first) + "-" + std::to_string(range.last);
}

std::string format_algorithm_choices(const std::vector<AlgorithmChoice>& choices) {
  std::string text;
  for (const AlgorithmChoice& choice : choices) {
    text += (text.empty() ? "" : ",") + std::string(to_string(choice.kind)) + ":" + choice.algorithm;
  }
  return text;
}

}  // namespace tutti
