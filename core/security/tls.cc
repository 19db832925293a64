#include "core/security/tls.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

namespace tutti::security {
namespace {

constexpr std::string_view identity = "tutti";

int socket_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

// OpenSSL's own socket BIO would raise SIGPIPE, so `make_bio` makes a BIO that uses these functions.
int send_bytes(BIO* bio, const char* bytes, std::size_t count, std::size_t* sent) {
  BIO_clear_retry_flags(bio);
  const ssize_t result = ::send(socket_of(bio), bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (result < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  *sent = result > 0 ? static_cast<std::size_t>(result) : 0;
  return result > 0 ? 1 : 0;
}

int receive_bytes(BIO* bio, char* bytes, std::size_t count, std::size_t* got) {
  BIO_clear_retry_flags(bio);
  const ssize_t result = ::recv(socket_of(bio), bytes, count, MSG_DONTWAIT);
  if (result < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (result == 0) errno = EPIPE;
  *got = result > 0 ? static_cast<std::size_t>(result) : 0;
  return result > 0 ? 1 : 0;
}

long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO* make_bio(int socket) {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tutti socket");
    BIO_meth_set_write_ex(made, send_bytes);
    BIO_meth_set_read_ex(made, receive_bytes);
    BIO_meth_set_ctrl(made, control);
    return made;
  }();
  BIO* const bio = BIO_new(method);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(bio, 1);
  return bio;
}

SSL_SESSION* session_of(SSL* ssl, const Digest& key) {
  constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
  SSL_SESSION* const session = SSL_SESSION_new();
  const bool made = session != nullptr &&
                    SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                                                key.size()) == 1 &&
                    SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, aes_128_gcm_sha256)) == 1 &&
                    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (made) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

}  // namespace

struct TlsCallbacks {
  static int use_key(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_bytes,
                     SSL_SESSION** session) {
    *id = reinterpret_cast<const unsigned char*>(identity.data());
    *id_bytes = identity.size();
    *session = session_of(ssl, static_cast<const Tls*>(SSL_get_app_data(ssl))->key_);
    return *session == nullptr ? 0 : 1;
  }
  static int find_key(SSL* ssl, const unsigned char* id, std::size_t id_bytes, SSL_SESSION** session) {
    const bool ours = std::string_view(reinterpret_cast<const char*>(id), id_bytes) == identity;
    *session = ours ? session_of(ssl, static_cast<const Tls*>(SSL_get_app_data(ssl))->key_) : nullptr;
    return 1;
  }
};

Tls::Tls(const TlsContext& context, int socket, const Digest& key, bool accepts)
    : has_certificate_(context.has_certificate()),
      rekey_bytes_(context.options().rekey_bytes),
      ssl_(SSL_new(context.get())),
      key_(key) {
  SSL_set_app_data(ssl_, this);
  BIO* const bio = make_bio(socket);
  SSL_set_bio(ssl_, bio, bio);
  if (!context.has_certificate() && accepts) SSL_set_psk_find_session_callback(ssl_, &TlsCallbacks::find_key);
  if (!context.has_certificate() && !accepts) {
    SSL_set_psk_use_session_callback(ssl_, &TlsCallbacks::use_key);
    SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);  // the context's callback refuses every certificate
  }
  if (accepts) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
  }
}

std::unique_ptr<Tls> Tls::connecting(const TlsContext& context, int socket, const Digest& key) {
  return std::unique_ptr<Tls>(new Tls(context, socket, key, false));
}

std::unique_ptr<Tls> Tls::accepting(const TlsContext& context, int socket, const Digest& key) {
  return std::unique_ptr<Tls>(new Tls(context, socket, key, true));
}

Tls::~Tls() {
  wipe(key_);
  wipe(channel_);
  wipe(record_);
  SSL_free(ssl_);
}

Tls::State Tls::handshake(int& error) {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    wipe(key_);
    return judge(error);
  }
  const bool writes = SSL_get_error(ssl_, result) == SSL_ERROR_WANT_WRITE;
  error = error_of(result);
  if (error != EAGAIN) return State::failed;
  return writes ? State::writing : State::reading;
}

// Checks that the key was used: TLS lets the accepting side ignore an offered key, and then nothing is
// proved.
Tls::State Tls::judge(int& error) {
  constexpr std::string_view label = "EXPORTER-Channel-Binding";
  const bool proved = has_certificate_ || SSL_session_reused(ssl_) == 1;
  const bool exported =
      proved && SSL_export_keying_material(ssl_, reinterpret_cast<unsigned char*>(channel_.data()),
                                           channel_.size(), label.data(), label.size(), nullptr, 0, 1) == 1;
  if (exported) return State::done;
  reason_ = proved ? "OpenSSL could not derive the connection's identifier" : "the key was not used";
  error = EPROTO;
  return State::failed;
}

// Returns the errno value for the result of an OpenSSL call. Keeps the reason in `reason_`, and clears
// OpenSSL's queue of errors for this thread.
int Tls::error_of(int result) {
  const int system = errno;
  const int kind = SSL_get_error(ssl_, result);
  const unsigned long error = ERR_peek_error();
  const char* const text = ERR_reason_error_string(error);
  ERR_clear_error();
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return EAGAIN;
  const bool ended = kind == SSL_ERROR_SSL && ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  if (kind == SSL_ERROR_ZERO_RETURN || ended) return EPIPE;
  if (kind == SSL_ERROR_SYSCALL) {
    reason_ = std::generic_category().message(system);
    return system == 0 ? EPIPE : system;
  }
  reason_ = text == nullptr ? "the bytes are not TLS" : text;
  return EPROTO;
}

std::size_t Tls::read(std::span<std::byte> place, int& error) {
  std::size_t got = 0;
  ERR_clear_error();
  const int result = SSL_read_ex(ssl_, place.data(), place.size(), &got);
  error = result == 1 ? 0 : error_of(result);
  return got;
}

std::size_t Tls::write(std::span<const std::span<const std::byte>> parts, int& error) {
  std::size_t total = 0, skip = 0;
  error = 0;
  while (!parts.empty() || in_record_ > 0) {
    // If an earlier call began a record and got EAGAIN, the parts begin with the bytes of that record.
    const bool begun = in_record_ > 0;
    std::size_t filled = 0;
    const std::size_t most = begun ? in_record_ : record_bytes;
    while (!parts.empty() && filled < most) {
      const auto rest = parts.front().subspan(skip);
      const std::size_t count = std::min(rest.size(), most - filled);
      if (!begun) std::memcpy(record_.data() + filled, rest.data(), count);
      filled += count;
      skip += count;
      if (count < rest.size()) continue;
      parts = parts.subspan(1);
      skip = 0;
    }
    if (!begun) in_record_ = filled;
    if (in_record_ == 0) break;
    const std::size_t written = write_record(error);
    if (written == 0) break;
    total += written;
  }
  return total;
}

// Writes the whole record. If that is not possible now, returns 0 and sets `error`.
std::size_t Tls::write_record(int& error) {
  std::size_t written = 0;
  ERR_clear_error();
  const int result = SSL_write_ex(ssl_, record_.data(), in_record_, &written);
  if (result != 1) {
    error = error_of(result);
    return 0;
  }
  in_record_ = 0;
  renew_keys(written);
  return written;
}

void Tls::renew_keys(std::size_t written) {
  written_ += written;
  if (written_ < rekey_bytes_) return;
  written_ = 0;
  SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);
}

bool Tls::has_pending() const { return SSL_pending(ssl_) > 0; }

}  // namespace tutti::security
