// Fuzzes data that strangers and peers send before the first frame: greetings of tcp and shm, and
// published addresses of ranks.
#include <array>
#include <span>

#include "tests/fuzz/input.h"
#include "transport/shm/address.h"
#include "transport/shm/note.h"
#include "transport/tcp/address.h"
#include "transport/tcp/handshake.h"

namespace tutti::fuzz {
namespace {

template <std::size_t size>
std::array<std::byte, size> take(Input& input) {
  std::array<std::byte, size> bytes{};
  std::ranges::copy(input.bytes(size), bytes.begin());
  return bytes;
}

void hello(Input& input) {
  const auto bytes = take<tcp::hello_bytes>(input);
  const auto said = tcp::decode_hello(bytes);
  if (!said) return;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    require(tcp::begins_like_hello(std::span(bytes).first(size)));
  }
  if (said->version == tcp::handshake_version) require(tcp::encode(*said) == bytes);
}

void answer(Input& input) {
  const auto bytes = take<tcp::answer_bytes>(input);
  const auto verdict = tcp::decode_answer(bytes);
  if (verdict && *verdict != tcp::Verdict::wrong_version) require(tcp::encode(*verdict) == bytes);
}

void addresses(Input& input) {
  const std::string text(input.rest());
  if (const auto parsed = tcp::parse_address(text)) {
    require(!parsed->endpoints.empty() && parsed->endpoints.size() <= 16);
    const auto again = tcp::parse_address(tcp::format(*parsed));
    require(again && tcp::format(*again) == tcp::format(*parsed) && again->nonce == parsed->nonce &&
            again->limits == parsed->limits);
  }
  if (const auto parsed = shm::parse_address(text)) {
    const auto again = shm::parse_address(shm::format(*parsed));
    require(again && again->name == parsed->name && again->nonce == parsed->nonce &&
            again->uid == parsed->uid && again->limits == parsed->limits);
  }
}

void note(Input& input) {
  const auto bytes = take<sizeof(shm::Note)>(input);
  shm::Note said;
  std::memcpy(&said, bytes.data(), sizeof said);
  if (!said.is_ours()) return;
  const Status why = said.why.failure(1);
  // A control character is shown as four characters, such as `\x1b`.
  require(!why.ok() && why.message().size() <= 4 * meeting::longest_reason);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  Input input(data, size);
  switch (input.byte()) {
    case 'h':
      hello(input);
      break;
    case 'a':
      answer(input);
      break;
    case 'n':
      note(input);
      break;
    default:
      addresses(input);
  }
  return 0;
}
