// Fuzzes the parser of sessions. The text of a session comes from a place such as a file, to which
// other processes may be able to write.
#include "rendezvous/meeting/session_text.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti;
  const auto session = parse_session(fuzz::Input(data, size).rest());
  if (!session.ok()) return 0;
  fuzz::require(size <= max_session_bytes && !session->endpoints.empty());
  const auto again = parse_session(format_session(*session).reveal());
  fuzz::require(again.ok() && again->nonce == session->nonce &&
                again->token.reveal() == session->token.reveal() && again->boot_id == session->boot_id &&
                again->endpoints == session->endpoints);
  return 0;
}
