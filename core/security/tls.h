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

// A `TlsContext` holds the settings that all encrypted connections of a process share. The connections use
// TLS 1.3 and nothing older, with certificates or with keys that both sides derive for each connection.
class TlsContext {
 public:
  struct Options {
    // These name PEM files: our certificate (with its chain), its key, and the authorities that must have
    // signed the other side's certificate. If they are empty, each connection has its own key.
    std::string certificate, key, authority;
    // A connection's keys are renewed after this many bytes, since an AES-GCM key must not protect more than
    // some 300 GiB.
    std::uint64_t rekey_bytes = std::uint64_t{1} << 36;
  };

  // Makes a context. The error `invalid_argument` names the file that cannot be used.
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
// blocks and never raises SIGPIPE. It may outlive its context. Only one thread at a time may call it. Errors
// are errno values. EPIPE means that the other side has closed the connection. EPROTO means that the
// handshake has failed, or that the received bytes are not those that the other side sent. EAGAIN and all
// other values are the socket's own errors.
class Tls {
 public:
  enum class State { reading, writing, done, failed };

  // `key` is the key of this connection alone, which both sides know. It is not used with certificates.
  static std::unique_ptr<Tls> connecting(const TlsContext& context, int socket, const Digest& key);
  static std::unique_ptr<Tls> accepting(const TlsContext& context, int socket, const Digest& key);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  State handshake(int& error);
  // Returns bytes that only the two ends of this connection know, once the handshake is done. If a process
  // between two ranks terminates TLS, the bytes of the two ranks differ (RFC 9266).
  const Digest& channel() const { return channel_; }
  // Returns in words why a call failed with EPROTO or with an error of the socket. The text means nothing
  // after EAGAIN, and after the peer has ended the connection.
  const std::string& reason() const { return reason_; }

  // `read` and `write` return how many bytes they moved. They set `error` to zero, or to the reason why they
  // moved no more bytes.
  std::size_t read(std::span<std::byte> place, int& error);
  // Writes the parts, one after the other. Bytes that `write` counts as written have been passed to the
  // kernel. After EAGAIN, the parts of the next call must begin with the same bytes; more may follow.
  std::size_t write(std::span<const std::span<const std::byte>> parts, int& error);
  // Returns whether this object holds bytes that it has read from the socket and not yet delivered. poll()
  // does not report these bytes.
  bool has_pending() const;

 private:
  Tls(const TlsContext& context, int socket, const Digest& key, bool accepts);
  friend struct TlsCallbacks;

  State judge(int& error);
  std::size_t write_record(int& error);
  int error_of(int result);
  void renew_keys(std::size_t written);

  const bool has_certificate_;
  const std::uint64_t rekey_bytes_;
  ssl_st* ssl_ = nullptr;
  Digest key_;
  Digest channel_{};
  std::string reason_;
  std::uint64_t written_ = 0;  // bytes since the keys were renewed
  static constexpr std::size_t record_bytes = 16 * 1024;
  // This is the plaintext of the record that is being written. Small parts share a record.
  std::array<std::byte, record_bytes> record_;
  std::size_t in_record_ = 0;
};

}  // namespace tutti::security
