#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/secret.h>
#include <tutti/status.h>

// A session file, which users name as `file:///path`, only says where rank 0's TCP store is. It is never
// locked, since shared file systems may grant one lock to two hosts. A rename puts it in place, so that
// nobody reads half a file. A reader trusts it only if the store at that place has the nonce from the file.
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
  Secret token;         // 64 hex digits; because of it, the file has mode 0600
  std::string boot_id;  // of rank 0's host; only that host may use its loopback endpoint
  std::vector<Endpoint> endpoints;
};

inline constexpr std::size_t max_session_bytes = 4096;

Secret format_session(const SessionText& session);
// Fails with `protocol_error`, which says what is wrong with the text.
Result<SessionText> parse_session(std::string_view text);

// Reads and parses a session file. Fails with `unreachable` if there is no file, or if the file is empty or
// damaged; then the session may still appear. Fails with `invalid_argument` if the path is a folder, its
// folder does not exist, or the file is not ours; then waiting does not help. A file is not ours if it
// belongs to a user other than this one and root, is open to others, is a link, is not a regular file, or
// does not begin like a session. So another user cannot lead us to a store of theirs, and files with other
// data are kept.
Result<SessionText> read_session(const std::string& path);

// `PublishedSession` is a session file of this process, with mode 0600. Its destructor removes the file
// unless another one has replaced it.
class PublishedSession {
 public:
  // Writes the file. Replaces a file at the path only if it is ours, and is empty or a session. Otherwise
  // fails with `invalid_argument`, which names the path and says why the file cannot be written, or what else
  // is at the path.
  static Result<PublishedSession> publish(const std::string& path, const SessionText& session);
  PublishedSession(PublishedSession&& other) noexcept;
  PublishedSession& operator=(PublishedSession&&) = delete;
  ~PublishedSession();

  // Publishes the file again if it has vanished. An earlier run that ends late may remove our file instead of
  // its own.
  void restore_if_missing() const;

 private:
  PublishedSession(std::string path, SessionText session);

  std::string path_;  // empty after a move
  SessionText session_;
  int owner_;  // this process's id, since a forked child must not remove the file
};

}  // namespace tutti::file
