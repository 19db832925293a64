#include <cerrno>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <unistd.h>

#include "core/error_text.h"
#include "core/security/tls.h"

namespace tutti::security {
namespace {

std::string last_reason() {
  const unsigned long error = ERR_peek_last_error();
  const char* const text = error == 0 ? nullptr : ERR_reason_error_string(error);
  ERR_clear_error();
  return text == nullptr ? "unknown reason" : text;
}

// Says why a file cannot be used. OpenSSL's own reasons ("system lib", "PEM lib") do not help a user. `thing`
// is what the file should hold.
Status bad_file(const char* variable, const std::string& path, const char* thing) {
  const bool readable = access(path.c_str(), R_OK) == 0;
  const std::string unreadable = readable ? "" : error_text(errno);
  const unsigned long error = ERR_peek_last_error();
  const bool other_key =
      ERR_GET_LIB(error) == ERR_LIB_X509 && ERR_GET_REASON(error) == X509_R_KEY_VALUES_MISMATCH;
  const std::string reason = last_reason();
  const std::string why = !readable   ? unreadable
                          : other_key ? "it is not the key of the certificate in TUTTI_TLS_CERT"
                                      : std::string("it holds no ") + thing + " in PEM (" + reason + ")";
  return Status(Code::invalid_argument, std::string(variable) + ": " + path + ": " + why);
}

Status load_files(SSL_CTX* context, const TlsContext::Options& options) {
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) != 1) {
    return bad_file("TUTTI_TLS_CERT", options.certificate, "certificate");
  }
  if (SSL_CTX_use_PrivateKey_file(context, options.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return bad_file("TUTTI_TLS_KEY", options.key, "private key");
  }
  if (SSL_CTX_load_verify_locations(context, options.authority.c_str(), nullptr) != 1) {
    return bad_file("TUTTI_TLS_CA", options.authority, "certificate");
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

// Refuses every certificate, no matter which authority has signed it. Without certificates of our own, the
// key from the token is the only accepted proof.
int refuse_certificate(X509_STORE_CTX* chain, void*) {
  X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

}  // namespace

TlsContext::TlsContext(const Options& options) : options_(options) {}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

Result<std::unique_ptr<const TlsContext>> TlsContext::create(const Options& options) {
  // NO_ATEXIT is set because our threads may still run when the process exits.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  std::unique_ptr<TlsContext> made(new TlsContext(options));
  made->context_ = SSL_CTX_new(TLS_method());
  SSL_CTX* const context = made->context_;
  if (context == nullptr) return Status(Code::internal, "TLS: " + last_reason());
  // A key that is derived from the token works only with ciphers that use its hash, SHA-256. So only these
  // ciphers are allowed.
  const bool set =
      SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1 &&
      SSL_CTX_set_num_tickets(context, 0) == 1;
  if (!set) return Status(Code::internal, "TLS: " + last_reason());
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  if (made->has_certificate()) {
    if (const Status loaded = load_files(context, options); !loaded.ok()) return loaded;
  } else {
    SSL_CTX_set_cert_verify_callback(context, refuse_certificate, nullptr);
  }
  return std::unique_ptr<const TlsContext>(std::move(made));
}

}  // namespace tutti::security
