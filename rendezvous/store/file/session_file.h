#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/secret.h>
#include <tutti/status.h>

// `file:///path`: the file only says where rank 0's TCP store is. Nothing is ever locked, since shared file
// systems grant one lock to two hosts; a file appears whole, by rename, or not at all. Its content is only
// believed if the store at that place confirms it with the nonce.
namespace tutti::file {

struct Endpoint {
  std::string address;
  std::uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// `SessionText` is a text of at most `max_session_bytes`, one "name value" per line, in this order:
// "tutti-session 1", nonce, token, boot, endpoint (one or more), "end".
struct SessionText {
  std::string nonce;    // of rank 0's store server, 32 hex digits
  Secret token;         // 64 hex digits; the reason for mode 0600
  std::string boot_id;  // of rank 0's host: its loopback endpoint is only meant for the same host
  std::vector<Endpoint> endpoints;
};

inline constexpr std::size_t max_session_bytes = 4096;

Secret format_session(const SessionText& session);
// `protocol_error` says what is wrong with the text.
Result<SessionText> parse_session(std::string_view text);

// Reads and parses. `unreachable`: there is no such file yet, or it is empty or a damaged session; it may
// become one. `invalid_argument`: it never will. The path is a folder, its folder does not exist, or what is
// there is not ours: it belongs to a user other than this one and root, is open to others, is a link, is not
// a regular file, or does not begin like a session. Another user cannot lead us to a store of theirs, and
// files with other data are kept.
Result<SessionText> read_session(const std::string& path);

// `PublishedSession` is a session file of this process, with mode 0600. Its destructor removes the file if it
// is still the same one.
class PublishedSession {
 public:
  // Replaces an empty file and a session, if they are ours. `invalid_argument` names the path and why it
  // cannot be written, or what is there that is not ours.
  static Result<PublishedSession> publish(const std::string& path, const SessionText& session);
  PublishedSession(PublishedSession&& other) noexcept;
  PublishedSession& operator=(PublishedSession&&) = delete;
  ~PublishedSession();

  // Publishes again if the file has vanished: an earlier run that ends may remove ours in place of its own.
  void restore_if_missing() const;

 private:
  PublishedSession(std::string path, SessionText session);

  std::string path_;  // empty: moved from
  SessionText session_;
  int owner_;  // pid: a forked child does not remove the file
};

}  // namespace tutti::file
