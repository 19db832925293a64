#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/secret.h>
#include <tutti/status.h>

namespace tutti {

// A `SessionText` says where rank 0's store is. It is a text of at most `max_session_bytes`, with
// one "name value" per line. The lines have this order: "tutti-session 1", nonce, token, boot,
// endpoint (one or more), "end". A reader trusts it only if the store at that place has the same
// nonce.
struct SessionText {
  struct Endpoint {
    std::string address;
    std::uint16_t port = 0;
    friend bool operator==(const Endpoint&, const Endpoint&) = default;
  };

  std::string nonce;    // the nonce of rank 0's store server: 32 hex digits
  Secret token;         // 64 hex digits; it is secret, so only the ranks may read the text
  std::string boot_id;  // the boot id of rank 0's host; only that host may use a loopback endpoint
  std::vector<Endpoint> endpoints;
};

inline constexpr std::size_t max_session_bytes = 4096;
// A session of any version begins like this.
inline constexpr std::string_view session_magic = "tutti-session ";

Secret format_session(const SessionText& session);
// Fails with `protocol_error`, which says what is wrong with the text.
Result<SessionText> parse_session(std::string_view text);

}  // namespace tutti
