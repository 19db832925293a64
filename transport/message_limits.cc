#include "transport/message_limits.h"

#include <algorithm>
#include <charconv>

namespace tutti {

MessageLimits minimum(const MessageLimits& a, const MessageLimits& b) {
  return {.eager = std::min(a.eager, b.eager),
          .credit = std::min(a.credit, b.credit),
          .fragment = std::min(a.fragment, b.fragment)};
}

std::string format(const MessageLimits& limits) {
  return std::to_string(limits.eager) + "," + std::to_string(limits.credit) + "," +
         std::to_string(limits.fragment);
}

std::optional<MessageLimits> parse_limits(std::string_view text) {
  MessageLimits limits;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::uint32_t* const limit : {&limits.eager, &limits.credit, &limits.fragment}) {
    const auto [next, error] = std::from_chars(at, end, *limit);
    const bool is_last = limit == &limits.fragment;
    if (error != std::errc() || (next == end) != is_last || (!is_last && *next != ',')) return std::nullopt;
    at = is_last ? next : next + 1;
  }
  if (limits.credit < MessageLimits::least_credit || limits.fragment < MessageLimits::least_fragment)
    return std::nullopt;
  return limits;
}

}  // namespace tutti
