#include "rendezvous/store/told_failure.h"

#include <algorithm>
#include <string>

namespace tutti {
namespace {

constexpr std::size_t longest_message = 4096;

// Cuts the text after at most `longest_message` bytes, but not in the middle of a UTF-8 character, and then
// appends the length of the uncut text.
std::string clipped(std::string_view text) {
  if (text.size() <= longest_message) return std::string(text);
  std::size_t end = longest_message;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  for (int steps = 0; steps < 3 && continues(end); ++steps) --end;
  return std::string(text.substr(0, end)) + "... (" + std::to_string(text.size()) + " bytes)";
}

}  // namespace

Status told_failure(std::uint32_t code, std::string_view message, int peer) {
  const bool known = code > 0 && code <= static_cast<std::uint32_t>(Code::internal);
  return Status(known ? static_cast<Code>(code) : Code::internal, clipped(message), std::max(peer, -1));
}

}  // namespace tutti
