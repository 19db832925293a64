#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <tutti/status.h>

#include "core/security/digest.h"

struct ssl_st;
struct ssl_ctx_st;

namespace tutti::security {

// A `TlsContext` is what all encrypted connections of a process share: TLS 1.3, never older, by certificates
// or by keys that both sides derive for each connection.
class TlsContext {
 public:
  struct Options {
    // PEM files: ours (with its chain), its key, and those that the other side's must be signed by. Empty: a
    // key for each connection.
    std::string certificate, key, authority;
    // A connection's keys are renewed after this many bytes: an AES-GCM key must not protect more than some
    // 300 GiB.
    std::uint64_t rekey_bytes = std::uint64_t{1} << 36;
  };

  // `invalid_argument` names the file that cannot be used.
  static Result<std::unique_ptr<const TlsContext>> create(const Options& options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  ssl_ctx_st* get() const { return context_; }
  const Options& options() const { return options_; }
  bool has_certificate() const { return !options_.certificate.empty(); }

 private:
  explicit TlsContext(const Options& options);

  Options options_;
  ssl_ctx_st* context_ = nullptr;
};

// A `Tls` is one encrypted connection over a non-blocking stream socket, which it does not own. It never
// blocks and never raises SIGPIPE. One thread at a time. Errors are errno values: EAGAIN; EPIPE, the other
// side has closed; EPROTO, the bytes that came are not those that the other side had sent; or the socket's.
class Tls {
 public:
  enum class State { reading, writing, done, failed };

  // `key` belongs to this connection alone, and both sides know it. It is not used if there are certificates.
  static std::unique_ptr<Tls> connecting(const TlsContext& context, int socket, const Digest& key);
  static std::unique_ptr<Tls> accepting(const TlsContext& context, int socket, const Digest& key);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  State handshake(int& error);
  // Once the handshake is done: bytes that the two ends of this very connection have in common. A relay that
  // ends TLS between them shares other bytes with each (RFC 9266).
  const Digest& channel() const { return channel_; }
  // The reason why the last call failed.
  const std::string& reason() const { return reason_; }

  // Both return how many bytes they moved, and zero with an error.
  std::size_t read(std::span<std::byte> place, int& error);
  // Takes from the parts, one after the other. Bytes that it reports as written have left; after EAGAIN it
  // must be offered at least the same bytes again.
  std::size_t write(std::span<const std::span<const std::byte>> parts, int& error);
  // Returns whether it holds bytes that have been read from the socket, for which the socket will not become
  // readable again.
  bool has_pending() const;

 private:
  Tls(const TlsContext& context, int socket, const Digest& key, bool accepts);
  friend struct TlsCallbacks;

  State judge(int& error);
  std::size_t write_record(int& error);
  int error_of(int result);
  void renew_keys(std::size_t written);

  const TlsContext& context_;
  ssl_st* ssl_ = nullptr;
  Digest key_;
  Digest channel_{};
  std::string reason_;
  std::uint64_t written_ = 0;  // since the keys were renewed
  // Plaintext of the record that is being written: small parts share one.
  static constexpr std::size_t record_bytes = 16 * 1024;
  std::array<std::byte, record_bytes> record_;
  std::size_t in_record_ = 0;
};

}  // namespace tutti::security
