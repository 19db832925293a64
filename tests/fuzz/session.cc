// Fuzzes the reader of session files. Any process that can write into the folder may have written the file.
#include "rendezvous/store/file/session_file.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti;
  const auto session = file::parse_session(fuzz::Input(data, size).rest());
  if (!session.ok()) return 0;
  fuzz::require(size <= file::max_session_bytes && !session->endpoints.empty());
  const auto again = file::parse_session(file::format_session(*session).reveal());
  fuzz::require(again.ok() && again->nonce == session->nonce &&
                again->token.reveal() == session->token.reveal() && again->boot_id == session->boot_id &&
                again->endpoints == session->endpoints);
  return 0;
}
